// SPDX-License-Identifier: GPL-2.0-or-later
// The whole life of a group, its requests and VMs, a policy and operations, by Google's own client for Node.js with
// Google's auth library, which finds its credentials at the metadata server.
//
// Usage: node google_client.cjs NODE_MODULES PORT
// Prints a line for each step and ends with "N steps passed"; the first that fails ends it with exit code 1.
"use strict";
const assert = require("node:assert/strict");
const path = require("node:path");

const [modules, port] = [process.argv[2], Number(process.argv[3])];
const compute = require(path.join(modules, "@google-cloud", "compute"));
const {GoogleAuth} = require(path.join(modules, "google-auth-library"));

const region = "us-central1";
const zone = "us-central1-a";
const auth = new GoogleAuth({scopes: ["https://www.googleapis.com/auth/cloud-platform"]});
const options = {auth, fallback: true, protocol: "http", apiEndpoint: "127.0.0.1", servicePath: "127.0.0.1", port};
const clients = {};
const client = (name) => (clients[name] = clients[name] || new compute[name](options));
let project = "";
let steps = 0;

async function step(name, work) {
  const result = await work();
  steps += 1;
  console.log(`ok ${name}`);
  return result;
}

/** Waits for the operation that a write began, with the client of its place; what became of it. */
async function ended([operation]) {
  const {name} = operation.latestResponse;
  const at = operation.latestResponse;
  const last = (url) => url.slice(url.lastIndexOf("/") + 1);
  const [done] = at.zone ? await client("ZoneOperationsClient").wait({project, zone: last(at.zone), operation: name})
    : at.region ? await client("RegionOperationsClient").wait({project, region: last(at.region), operation: name})
      : await client("GlobalOperationsClient").wait({project, operation: name});
  assert.equal(done.status, "DONE", JSON.stringify(done));
  assert.equal(done.error ?? null, null, JSON.stringify(done.error));
  return done;
}

async function all(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

/** What lists by place have, in all places. */
async function everywhere(iterable, key) {
  const items = await all(iterable);
  return items.flatMap(([, place]) => place[key] || []);
}

const names = (items) => items.map((item) => item.name).sort();

/** Asks until it is so; at most ten seconds. */
async function until(ask, isSo) {
  const end = Date.now() + 10000;
  for (;;) {
    const got = await ask();
    if (isSo(got)) return got;
    assert.ok(Date.now() < end, `not in ten seconds: ${JSON.stringify(got)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The emulator's own settings; no part of Google's API. */
async function configure(settings) {
  const answer = await fetch(`http://127.0.0.1:${port}/_emulator/config`, {method: "POST", body: JSON.stringify(settings)});
  assert.equal(answer.status, 200);
}

async function fails(work, code, words) {
  await assert.rejects(work, (error) => {
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  });
}

async function credentials() {
  await step("the metadata server is found", async () => {
    project = await auth.getProjectId();
    assert.equal(project, "test-project");
    assert.equal(await auth.getUniverseDomain(), "googleapis.com");
    const {client_email: email} = await auth.getCredentials();
    assert.match(email, /gserviceaccount\.com$/);
    assert.ok((await auth.getAccessToken()).startsWith("ya29."));
  });
}

async function places() {
  await step("regions, their quotas, zones and machine types", async () => {
    const [one] = await client("RegionsClient").get({project, region});
    assert.ok(one.quotas.some((quota) => quota.metric === "INSTANCES" && quota.limit > 0), JSON.stringify(one.quotas));
    assert.ok(names(await all(client("RegionsClient").listAsync({project}))).includes(region));
    assert.ok(names(await all(client("ZonesClient").listAsync({project, filter: `name = ${zone}`}))).includes(zone));
    assert.equal((await client("ZonesClient").get({project, zone}))[0].status, "UP");
    const types = await all(client("MachineTypesClient").listAsync({project, zone, maxResults: 3}));
    assert.ok(names(types).includes("a3-ultragpu-8g"));
    const [own] = await client("ProjectsClient").get({project});
    assert.equal(own.name, project);
  });
}

async function templatesAndPolicies() {
  await step("an instance template", async () => {
    const instanceTemplateResource = {name: "t", properties: {machineType: "a3-ultragpu-8g",
      scheduling: {provisioningModel: "FLEX_START", instanceTerminationAction: "DELETE", maxRunDuration: {seconds: "604800"}},
      disks: [{boot: true, autoDelete: true, initializeParams: {sourceImage: "projects/debian-cloud/global/images/family/debian-12"}}],
      networkInterfaces: [{network: "global/networks/default"}]}};
    await ended(await client("InstanceTemplatesClient").insert({project, instanceTemplateResource}));
    const [got] = await client("InstanceTemplatesClient").get({project, instanceTemplate: "t"});
    assert.equal(got.properties.scheduling.maxRunDuration.seconds, "604800");
    assert.deepEqual(names(await all(client("InstanceTemplatesClient").listAsync({project}))), ["t"]);
  });
  await step("a workload policy", async () => {
    const resourcePolicyResource = {name: "p", workloadPolicy: {type: "HIGH_THROUGHPUT"}};
    await ended(await client("ResourcePoliciesClient").insert({project, region, resourcePolicyResource,
      requestId: "8a8f1c56-9d0a-4e1c-9e39-7a27d4a3a001"}));
    const [got] = await client("ResourcePoliciesClient").get({project, region, resourcePolicy: "p"});
    assert.equal(got.workloadPolicy.type, "HIGH_THROUGHPUT");
    assert.deepEqual(names(await everywhere(client("ResourcePoliciesClient").aggregatedListAsync({project}), "resourcePolicies")), ["p"]);
  });
}

const groupBody = (name, more) => ({name, baseInstanceName: name, targetSize: 0,
  versions: [{instanceTemplate: "global/instanceTemplates/t"}],
  distributionPolicy: {targetShape: "ANY_SINGLE_ZONE", zones: [{zone: `zones/${zone}`}]},
  updatePolicy: {instanceRedistributionType: "NONE"}, instanceLifecyclePolicy: {defaultActionOnFailure: "DO_NOTHING"}, ...more});

async function regionalGroup() {
  const groups = client("RegionInstanceGroupManagersClient");
  await step("a regional group", async () => {
    await ended(await groups.insert({project, region, instanceGroupManagerResource:
      groupBody("g", {resourcePolicies: {workloadPolicy: `projects/${project}/regions/${region}/resourcePolicies/p`}})}));
    const [got] = await groups.get({project, region, instanceGroupManager: "g"});
    assert.equal(got.distributionPolicy.targetShape, "ANY_SINGLE_ZONE");
    assert.deepEqual(names(await all(groups.listAsync({project, region, returnPartialSuccess: true}))), ["g"]);
    const listed = await everywhere(client("InstanceGroupManagersClient").aggregatedListAsync({project}), "instanceGroupManagers");
    assert.deepEqual(names(listed), ["g"]);
    await fails(client("ResourcePoliciesClient").delete({project, region, resourcePolicy: "p"}), 400, /./);
    await fails(groups.get({project, region, instanceGroupManager: "none"}), 404, /not found/);
  });
}

async function requestsOf(kind, place, group) {
  const requests = client(kind);
  const at = {project, ...place, instanceGroupManager: group};
  const ask = (name, nodes) => requests.insert({...at, instanceGroupManagerResizeRequestResource:
    {name, instances: nodes.map((node) => ({name: node})), requestedRunDuration: {seconds: "3600"}}});
  const state = async (name) => (await requests.get({...at, resizeRequest: name}))[0].state;
  await step(`${group}: a request waits and is cancelled`, async () => {
    await configure({capacity: {[zone]: 0}});
    await ended(await ask("r1", [`${group}-1`, `${group}-2`]));
    await until(() => state("r1"), (now) => now === "ACCEPTED");
    assert.deepEqual(names(await all(requests.listAsync({...at, maxResults: 1}))), ["r1"]);
    await ended(await requests.cancel({...at, resizeRequest: "r1"}));
    assert.equal(await state("r1"), "CANCELLED");
    await ended(await requests.delete({...at, resizeRequest: "r1"}));
    await fails(state("r1"), 404, /not found/);
  });
  await step(`${group}: a request is served`, async () => {
    await configure({capacity: {[zone]: -1}});
    await ended(await ask("r2", [`${group}-1`, `${group}-2`]));
    await until(() => state("r2"), (now) => now === "SUCCEEDED");
  });
}

async function membersOf(kind, place, group) {
  const groups = client(kind);
  const at = {project, ...place, instanceGroupManager: group};
  const members = () => all(groups.listManagedInstancesAsync(at));
  await step(`${group}: its VMs come up and are deleted`, async () => {
    const up = await until(members, (now) => now.length === 2 && now.every((each) => each.instanceStatus === "RUNNING"));
    assert.deepEqual(names(up), [`${group}-1`, `${group}-2`]);
    assert.ok(up.every((each) => each.currentAction === "NONE" && each.instance.includes(`/zones/${zone}/`)));
    const body = {instances: [up[0].instance], skipInstancesOnValidationError: true};
    const key = kind.startsWith("Region") ? "regionInstanceGroupManagersDeleteInstancesRequestResource"
      : "instanceGroupManagersDeleteInstancesRequestResource";
    await ended(await groups.deleteInstances({...at, [key]: body}));
    assert.equal((await members()).length, 1);
    await all(groups.listErrorsAsync(at));
  });
  await step(`${group}: is deleted with what it has`, async () => {
    await ended(await groups.delete(at));
    await fails(groups.get(at), 404, /not found/);
  });
}

async function oneByOne() {
  const groups = client("RegionInstanceGroupManagersClient");
  const at = {project, region, instanceGroupManager: "one"};
  await step("VMs one by one", async () => {
    await ended(await groups.insert({project, region, instanceGroupManagerResource:
      groupBody("one", {targetSizePolicy: {mode: "INDIVIDUAL"}, distributionPolicy: {targetShape: "ANY", zones: [{zone: `zones/${zone}`}]}})}));
    await ended(await groups.createInstances({...at, regionInstanceGroupManagersCreateInstancesRequestResource: {instances: [{name: "one-1"}]}}));
    const listed = await all(groups.listManagedInstancesAsync(at));
    assert.deepEqual(names(listed), ["one-1"]);
    await ended(await groups.delete(at));
  });
}

async function zonalGroup() {
  await step("a zonal group", async () => {
    const instanceGroupManagerResource = groupBody("z", {distributionPolicy: undefined, updatePolicy: undefined});
    await ended(await client("InstanceGroupManagersClient").insert({project, zone, instanceGroupManagerResource}));
    assert.deepEqual(names(await all(client("InstanceGroupManagersClient").listAsync({project, zone}))), ["z"]);
  });
}

async function vms() {
  const instances = client("InstancesClient");
  await step("VMs without a group", async () => {
    const bulkInsertInstanceResourceResource = {count: "2", minCount: "2", sourceInstanceTemplate: "global/instanceTemplates/t",
      perInstanceProperties: {"b-1": {name: "b-1"}, "b-2": {name: "b-2"}}, locationPolicy: {zones: [{zone: `zones/${zone}`}]}};
    const done = await ended(await client("RegionInstancesClient").bulkInsert({project, region, bulkInsertInstanceResourceResource}));
    assert.equal(done.instancesBulkInsertOperationMetadata.perLocationStatus[`zones/${zone}`].createdVmCount, 2);
    await ended(await instances.insert({project, zone, sourceInstanceTemplate: "global/instanceTemplates/t", instanceResource: {name: "b-3"}}));
    assert.deepEqual(names(await all(instances.listAsync({project, zone}))), ["b-1", "b-2", "b-3"]);
    assert.deepEqual(names(await everywhere(instances.aggregatedListAsync({project, maxResults: 2}), "instances")), ["b-1", "b-2", "b-3"]);
    const [got] = await instances.get({project, zone, instance: "b-1"});
    assert.equal(got.scheduling.provisioningModel, "FLEX_START");
    await instances.getSerialPortOutput({project, zone, instance: "b-1", port: 1});
    for (const instance of ["b-1", "b-2", "b-3"]) await ended(await instances.delete({project, zone, instance}));
    assert.deepEqual(await all(instances.listAsync({project, zone})), []);
  });
}

async function leaving() {
  await step("policy and template are deleted", async () => {
    await ended(await client("ResourcePoliciesClient").delete({project, region, resourcePolicy: "p"}));
    await ended(await client("InstanceTemplatesClient").delete({project, instanceTemplate: "t"}));
  });
  await step("operations are listed and read", async () => {
    const operations = await all(client("RegionOperationsClient").listAsync({project, region, filter: "status = DONE"}));
    assert.ok(operations.length > 10, operations.length);
    const [one] = await client("RegionOperationsClient").get({project, region, operation: operations[0].name});
    assert.equal(one.status, "DONE");
    assert.ok((await all(client("ZoneOperationsClient").listAsync({project, zone}))).length > 0);
    assert.ok((await all(client("GlobalOperationsClient").listAsync({project}))).length > 0);
    assert.ok((await everywhere(client("GlobalOperationsClient").aggregatedListAsync({project}), "operations")).length > 10);
  });
}

async function main() {
  await credentials();
  await places();
  await templatesAndPolicies();
  await regionalGroup();
  await requestsOf("RegionInstanceGroupManagerResizeRequestsClient", {region}, "g");
  await membersOf("RegionInstanceGroupManagersClient", {region}, "g");
  await oneByOne();
  await zonalGroup();
  await requestsOf("InstanceGroupManagerResizeRequestsClient", {zone}, "z");
  await membersOf("InstanceGroupManagersClient", {zone}, "z");
  await vms();
  await leaving();
  console.log(`${steps} steps passed`);
}

main().catch((error) => {
  console.log(`FAIL after ${steps} steps: ${error.stack || error}`);
  process.exitCode = 1;
});

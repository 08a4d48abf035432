# SPDX-License-Identifier: GPL-2.0-or-later
"""The emulator's shapes against the API's contract, where the contract is present."""
import importlib.util
import json
import os
import re

from emulator_client import TEMPLATES, Api, Emulator


def own_shapes(root):
    with open(os.path.join(root, 'emulator', 'shapes_data.cc'), encoding='utf-8') as file:
        return json.loads(''.join(re.findall(r'R"~\((.*)\)~"', file.read())))


def expected_shapes(root, contract):
    spec = importlib.util.spec_from_file_location('gen_shapes', os.path.join(root, 'emulator', 'gen_shapes.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.shapes(contract)


def check(contract, message, value, path):
    """Every field of an answer is in the contract and has its type."""
    for key, item in value.items():
        field = contract['messages'][message].get(key)
        assert field, 'unknown field %s.%s in an answer' % (path, key)
        items = item if field.get('repeated') else list(item.values()) if field.get('map') else [item]
        for one in items:
            where = '%s.%s' % (path, key)
            if field['type'] == 'message':
                check(contract, field['message'], one, where)
            elif field['type'] in ('int64', 'uint64'):
                assert isinstance(one, str) and re.fullmatch('-?[0-9]+', one), (where, one)
            elif field['type'] == 'enum':
                assert one in field['enum'], (where, one)
            elif field['type'] == 'string':
                assert isinstance(one, str), (where, one)
            elif field['type'] == 'bool':
                assert isinstance(one, bool), (where, one)


READS = [
    ('regionInstanceGroupManagers.get', 'GET', 'regions/us-central1/instanceGroupManagers/g'),
    ('regionInstanceGroupManagers.list', 'GET', 'regions/us-central1/instanceGroupManagers'),
    ('regionInstanceGroupManagers.listManagedInstances', 'POST',
     'regions/us-central1/instanceGroupManagers/g/listManagedInstances'),
    ('regionInstanceGroupManagerResizeRequests.get', 'GET',
     'regions/us-central1/instanceGroupManagers/g/resizeRequests/r1'),
    ('regionInstanceGroupManagerResizeRequests.list', 'GET',
     'regions/us-central1/instanceGroupManagers/g/resizeRequests'),
    ('instanceGroupManagers.aggregatedList', 'GET', 'aggregated/instanceGroupManagers'),
    ('instances.aggregatedList', 'GET', 'aggregated/instances'),
    ('instances.list', 'GET', 'zones/us-central1-a/instances'),
    ('regionOperations.list', 'GET', 'regions/us-central1/operations'),
    ('globalOperations.aggregatedList', 'GET', 'aggregated/operations'),
    ('instanceTemplates.list', 'GET', 'global/instanceTemplates'),
    ('instanceTemplates.aggregatedList', 'GET', 'aggregated/instanceTemplates'),
    ('resourcePolicies.list', 'GET', 'regions/us-central1/resourcePolicies'),
    ('regions.list', 'GET', 'regions'),
    ('zones.list', 'GET', 'zones'),
    ('projects.get', 'GET', ''),
    ('machineTypes.list', 'GET', 'zones/us-central1-a/machineTypes'),
    ('instanceGroups.aggregatedList', 'GET', 'aggregated/instanceGroups'),
    ('regionInstanceGroups.list', 'GET', 'regions/us-central1/instanceGroups'),
    ('autoscalers.aggregatedList', 'GET', 'aggregated/autoscalers'),
    ('regionAutoscalers.list', 'GET', 'regions/us-central1/autoscalers'),
    ('instances.getSerialPortOutput', 'GET', 'zones/us-central1-a/instances/n1/serialPort'),
]


def tests(program, root):
    with open(os.path.join(root, 'test', 'data', 'gce', 'contract.json'), encoding='utf-8') as file:
        contract = json.load(file)

    def shapes_are_the_contracts():
        assert own_shapes(root) == expected_shapes(root, contract), 'run emulator/gen_shapes.py again'

    def answers_keep_to_the_contract():
        config = {**TEMPLATES, 'capacity': {'us-central1-a': 2, 'us-central1-b': 0}, 'quota': {'INSTANCES': 9}}
        with Emulator(program, config) as emulator:
            api = Api(emulator)
            made = api.make_group('g')
            check(contract, 'Operation', made, 'operation')
            api.request('g', 'r0', ['n1', 'n2'])
            emulator.wait(running=2)
            api.request('g', 'r1', ['n3'])
            api.done('POST', '/resourcePolicies', {'name': 'w', 'workloadPolicy': {'type': 'HIGH_THROUGHPUT'}})
            emulator.wait(operations=0)
            body = {'count': '1', 'perInstanceProperties': {'b1': {}}, 'instanceProperties': {'description': 'd'},
                    'sourceInstanceTemplate': 'global/instanceTemplates/a3u-flex'}
            check(contract, 'Operation', api.done('POST', '/instances/bulkInsert', body), 'operation')
            for method, verb, where in READS:
                status, reply = emulator.call(verb, ('/compute/v1/projects/p/' + where).rstrip('/'))
                assert status == 200, (method, reply)
                assert contract['methods'][method]['verb'] == verb
                check(contract, contract['methods'][method]['response'], reply, method)
            outside = {entry['method'] for entry in emulator.control('journal')} - set(contract['methods'])
            assert not outside, outside

    return [('shapes are the contract\'s', shapes_are_the_contracts),
            ('answers keep to the contract', answers_keep_to_the_contract)]

// SPDX-License-Identifier: GPL-2.0-or-later
// The key file, the token, and whether the API is to be reached at all.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <sys/stat.h>

namespace flex::doctor {
namespace {

void check_key_file(const Facts& facts, Findings& findings) {
  const FileFacts& file = facts.cloud.key_file;
  if (!file.exists) return;
  const Place place = yaml_place(facts, "credentials");
  if (!facts.slurm.user_may(file, S_IROTH))
    findings.push_back(
        {.id = "credentials.owner",
         .what = fmt::format("SlurmUser {} cannot read {}", facts.slurm.slurm_user_name, file.path),
         .why = "all programs run as SlurmUser, and get no token without it",
         .fix = "give the file to SlurmUser, mode 0600",
         .place = place,
         .hints = {fmt::format("chown {} {}", facts.slurm.slurm_user_name, file.path)}});
  if ((file.mode & S_IROTH) != 0)
    findings.push_back({.id = "credentials.mode",
                        .severity = Severity::Warning,
                        .what = fmt::format("{} may be read by everybody", file.path),
                        .why = "whoever has the key can make and delete VMs in your project",
                        .fix = "take that right away: mode 0600",
                        .place = place,
                        .hints = {fmt::format("chmod 0600 {}", file.path)}});
}

void check_environment(const Facts& facts, Findings& findings) {
  const std::string& path = facts.cloud.environment_key;
  if (path.empty()) return;
  findings.push_back(
      {.id = "credentials.environment",
       .severity = Severity::Warning,
       .what = fmt::format("GOOGLE_APPLICATION_CREDENTIALS={} is set here, 'credentials' is auto",
                           path),
       .why = "slurmctld hands nothing of its environment on to flex-resume and flex-suspend: they "
              "use other credentials than you, or none",
       .fix = fmt::format("write credentials: {}", path),
       .place = yaml_place(facts, "credentials"),
       .hints = {fmt::format("credentials: {}", path)}});
}

void check_token(const Facts& facts, const Error& error, Findings& findings) {
  const bool is_unreachable = error.code == "HTTP_FAILED";
  findings.push_back(
      {.id = is_unreachable ? "api.unreachable" : "credentials.token",
       .what = error.what,
       .why = "without a token nothing can be asked of Google; nothing of the project was checked",
       .fix = is_unreachable
                  ? "see that this machine reaches the address, directly or through https_proxy"
                  : "name a key file with 'credentials:', or give this VM a service account",
       .place = yaml_place(facts, "credentials"),
       .hints = {"credentials: /etc/slurm/flex-start-key.json"}});
}

/// Errors that are the same for every call.
void check_api(const Facts& facts, const Error& error, Findings& findings) {
  const bool is_disabled = error.code == "accessNotConfigured" || error.code == "SERVICE_DISABLED";
  const bool is_unreachable = error.kind == ErrorKind::Retry;
  if (is_disabled)
    findings.push_back({.id = "api.disabled",
                        .what = error.what,
                        .why = "no call is answered before the Compute Engine API is enabled",
                        .fix = "enable it",
                        .place = yaml_place(facts, "project"),
                        .hints = {"gcloud services enable compute.googleapis.com"}});
  else if (is_unreachable)
    findings.push_back(
        {.id = "api.unreachable",
         .what = error.what,
         .why = "no VM can be asked for; nothing of the project was checked",
         .fix = "see that this machine reaches the endpoint, directly or through https_proxy",
         .place = yaml_place(facts, "api.endpoint"),
         .hints = {
             fmt::format("curl -sS {}/compute/v1/projects", facts.yaml.config().api.endpoint)}});
}

/// A VM's access scopes bound what its account's roles allow. Those of reading only are known, too.
void check_scope(const Facts& facts, Findings& findings) {
  for (const auto& [question, error] : facts.cloud.failures) {
    if (!lacks_scope(error)) continue;
    findings.push_back(
        {.id = "credentials.scope",
         .what = error.what,
         .why = "the token of this VM is not for Compute Engine, whatever roles its account has; "
                "permissions were not checked",
         .fix = "stop the VM, give it the access scope cloud-platform, and start it again; or name "
                "a key file with 'credentials:'",
         .place = yaml_place(facts, "credentials"),
         .hints = {"gcloud compute instances stop VM --zone=ZONE",
                   "gcloud compute instances set-service-account VM --zone=ZONE "
                   "--service-account=ACCOUNT --scopes=cloud-platform",
                   "gcloud compute instances start VM --zone=ZONE"}});
    return;
  }
}

}  // namespace

void check_credentials(const Facts& facts, Findings& findings) {
  const CloudLook& cloud = facts.cloud;
  if (!facts.yaml.is_good()) return;
  if (!cloud.credentials_error.empty()) {
    findings.push_back({.id = "credentials.file",
                        .what = cloud.credentials_error,
                        .why = "no program gets a token without it",
                        .fix = "name a key file that can be read, or 'auto'",
                        .place = yaml_place(facts, "credentials"),
                        .hints = {"credentials: auto"}});
    return;
  }
  check_environment(facts, findings);
  check_key_file(facts, findings);
  if (!cloud.not_opened.empty())
    findings.push_back({.id = "api.endpoint",
                        .what = cloud.not_opened,
                        .why = "no call can be made",
                        .fix = "correct api.endpoint",
                        .place = yaml_place(facts, "api.endpoint")});
  if (cloud.token && !*cloud.token) return check_token(facts, cloud.token->error(), findings);
  if (cloud.region && !*cloud.region) check_api(facts, cloud.region->error(), findings);
  check_scope(facts, findings);
}

}  // namespace flex::doctor

// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/credentials.h"

#include "test/support/catch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

using namespace flex;

namespace {

const std::string kUser =
    R"({"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r"})";
const std::string kAccount =
    R"({"type":"service_account","client_email":"e","private_key":"k","project_id":"p1"})";

/// A directory of our own, and the variables that matter as they were.
class Scene {
 public:
  Scene() {
    std::string pattern = std::filesystem::temp_directory_path() / "flex-cred-XXXXXX";
    directory_ = mkdtemp(pattern.data());
    for (auto& [name, value] : saved_) {
      if (const char* old = std::getenv(name)) value = old;
      unsetenv(name);
    }
    setenv("HOME", directory_.c_str(), 1);
  }

  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  ~Scene() {
    for (const auto& [name, value] : saved_) {
      if (value)
        setenv(name, value->c_str(), 1);
      else
        unsetenv(name);
    }
    std::filesystem::remove_all(directory_);
  }

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const auto path = std::filesystem::path(directory_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  std::string directory_{};
  std::pair<const char*, std::optional<std::string>> saved_[4] = {
      {"GOOGLE_APPLICATION_CREDENTIALS", {}},
      {"CLOUDSDK_CONFIG", {}},
      {"HOME", {}},
      {"GCE_METADATA_HOST", {}}};
};

}  // namespace

TEST_CASE("credentials: reads both types of key file", "[gce]") {
  const auto account = parse_credentials(kAccount);
  REQUIRE(account);
  REQUIRE(std::holds_alternative<ServiceAccount>(*account));
  CHECK(std::get<ServiceAccount>(*account).token_url == "https://oauth2.googleapis.com/token");
  CHECK(std::get<ServiceAccount>(*account).project == "p1");
  const auto user = parse_credentials(kUser);
  REQUIRE(user);
  CHECK(std::holds_alternative<AuthorizedUser>(*user));
}

TEST_CASE("credentials: a bad key file is Invalid, and nothing of it is quoted", "[gce]") {
  const std::string text = GENERATE(
      as<std::string>{},
      "",
      "[]",
      "{}",
      "hush",
      R"({"type":"external_account"})",
      R"({"type":"service_account"})",
      R"({"type":"service_account","client_email":"e"})",
      R"({"type":"service_account","private_key":"hush"})",
      R"({"type":"service_account","client_email":"e","private_key":["hush"]})",
      R"({"type":"service_account","client_email":"e","private_key":"hush","token_uri":"http://evil.example/"})",
      R"({"type":"service_account","client_email":"e","private_key":"hush","token_uri":"file:///x"})",
      R"({"type":"authorized_user","client_id":"i","client_secret":"hush"})");
  CAPTURE(text);
  const auto credentials = parse_credentials(text);
  REQUIRE_FALSE(credentials);
  CHECK(credentials.error().kind == ErrorKind::Invalid);
  CHECK(credentials.error().what.find("hush") == std::string::npos);
}

TEST_CASE("credentials: auto goes through the places in order", "[gce]") {
  Scene scene;
  CHECK(std::holds_alternative<MetadataServer>(*load_credentials("auto")));
  scene.write(".config/gcloud/application_default_credentials.json", kUser);
  CHECK(std::holds_alternative<AuthorizedUser>(*load_credentials("auto")));
  setenv("CLOUDSDK_CONFIG", (scene.directory() + "/other").c_str(), 1);
  CHECK(std::holds_alternative<MetadataServer>(*load_credentials("auto")));
  scene.write("other/application_default_credentials.json", kUser);
  CHECK(std::holds_alternative<AuthorizedUser>(*load_credentials("auto")));
  setenv("GOOGLE_APPLICATION_CREDENTIALS", scene.write("key.json", kAccount).c_str(), 1);
  CHECK(std::holds_alternative<ServiceAccount>(*load_credentials("auto")));
  CHECK(std::holds_alternative<MetadataServer>(*load_credentials("metadata")));
  CHECK(std::holds_alternative<AuthorizedUser>(
      *load_credentials(scene.directory() + "/other/application_default_credentials.json")));
}

TEST_CASE("credentials: without HOME the user's own is taken", "[gce]") {
  Scene scene;
  unsetenv("HOME");
  setenv("CLOUDSDK_CONFIG", scene.directory().c_str(), 1);
  CHECK(load_credentials("auto"));
  unsetenv("CLOUDSDK_CONFIG");
  static_cast<void>(load_credentials("auto"));
}

TEST_CASE("credentials: a file that is named has to be there and to be safe", "[gce]") {
  Scene scene;
  const auto missing = load_credentials(scene.directory() + "/none.json");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().kind == ErrorKind::Invalid);
  CHECK_THAT(missing.error().what, ContainsSubstring("none.json"));
  const mode_t mode = GENERATE(as<mode_t>{}, 0620U, 0602U, 0666U);
  const auto writable = load_credentials(scene.write("key.json", kAccount, mode));
  REQUIRE_FALSE(writable);
  CHECK(writable.error().kind == ErrorKind::Invalid);
  CHECK_THAT(writable.error().what, ContainsSubstring("may write"));
  CHECK_FALSE(load_credentials(scene.directory()));
  CHECK_FALSE(load_credentials(scene.write("large.json", std::string(70000, ' '))));
}

TEST_CASE("credentials: the metadata server's name becomes its address", "[gce]") {
  Scene scene;
  CHECK(metadata_host() == "169.254.169.254");
  setenv("GCE_METADATA_HOST", "metadata.google.internal", 1);
  CHECK(metadata_host() == "169.254.169.254");
  setenv("GCE_METADATA_HOST", "127.0.0.1:8080", 1);
  CHECK(metadata_host() == "127.0.0.1:8080");
}

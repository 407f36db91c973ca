// A coordinator's data directory and live state for the fuzz target of the admin API. Two projects have the
// same objects: users, access tokens, join tokens, clients and runs in several states. Each string of a
// project's objects contains the project's marks, by which an answer to the other project is recognised.
// The directory is filled once in a process; restore() brings it back. One thread.
#pragma once

#include <stdlib.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/tracks/policy.h"
#include "core/check.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/access_control.h"
#include "server/api/api.h"
#include "server/contact/key_rotation.h"
#include "server/data_directory.h"
#include "server/enrolment.h"
#include "server/live/live.h"
#include "server/policy_file.h"
#include "server/store/sqlite_store.h"
#include "tests/fuzz/targets/api/runs.h"

namespace fedge::fuzz {

class ApiCoordinator {
 public:
  ApiCoordinator() {
    std::error_code none;
    const std::filesystem::path memory = "/dev/shm";
    std::string folder =
        ((std::filesystem::is_directory(memory, none) ? memory : std::filesystem::temp_directory_path()) /
         "fedge-api-XXXXXX")
            .string();
    FEDGE_CHECK(::mkdtemp(folder.data()) != nullptr, "no temporary folder");
    folder_ = folder;
    fill();
    restore();
  }
  ~ApiCoordinator() {
    api_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ApiCoordinator(const ApiCoordinator&) = delete;
  ApiCoordinator& operator=(const ApiCoordinator&) = delete;

  server::Api& api() { return *api_; }
  const std::filesystem::path& directory() const { return directory_; }
  const std::array<ApiTeam, 2>& teams() const { return teams_; }
  // Strings that are in no answer to anybody.
  const std::vector<std::string>& secrets() const { return secrets_; }

  // Brings back the directory as it was filled.
  void restore() {
    api_.reset();
    std::filesystem::remove_all(directory_);
    std::filesystem::copy(template_, directory_, std::filesystem::copy_options::recursive);
    api_ = std::make_unique<server::Api>(
        server::ApiParts{.data_directory = directory_, .software = "fedge-coordinator 9.9", .live = live_});
  }

 private:
  using Order = server::TokenOrder;

  void fill() {
    template_ = folder_ / "template";
    directory_ = folder_ / "data";
    fulfil(make_directory(template_, 0700));
    (void)fulfilled(server::take_up_key(template_));
    fulfil(write_file_atomic(template_ / "address", std::string("127.0.0.1:7433\n")));
    const server::Actor root{"user root", "192.0.2.1"};
    server::AccessControl access(template_);
    for (const ApiTeam& team : teams_) fulfil(access.add_project(root, team.project, server::calendar_now()));
    for (ApiTeam& team : teams_) {
      add_users(access, team, root);
      add_clients(team);
      add_runs(team);
    }
    server::Enrolment enrolment(template_);
    live_->set_told_key(fulfilled(server::announce_next_key(template_, enrolment, root)));
    secrets_.push_back(to_hex(sha256(secrets_.front())));
    for (const char* file : {"node.key", "next.key"})
      secrets_.push_back(fulfilled(read_file(template_ / file, 4096)).substr(0, 32));
  }

  void add_users(server::AccessControl& access, const ApiTeam& team, const server::Actor& root) {
    const auto now = server::calendar_now();
    for (const char* role : {"viewer", "admin"}) {
      const std::string user = team.mark + "." + role;
      fulfil(access.add_user(root, user, {{team.project, *server::parse_role(role)}}, now));
      const auto token = fulfilled(access.create_token(
          root,
          {.user = user, .now = now, .lifetime = std::chrono::hours(900), .note = team.mark + " laptop"}));
      secrets_.push_back(token.secret);
      if (role == std::string("admin")) fulfil(access.revoke_token(root, token.id));
    }
    fulfil(access.add_user(root, team.mark + ".gone", {}, now));
    fulfil(access.remove_user(root, team.mark + ".gone"));
  }

  // Clients: enrolled and online, pending, revoked, enrolled and never seen, invited. Join tokens in every
  // state.
  void add_clients(ApiTeam& team) {
    server::Enrolment enrolment(template_);
    const auto now = server::calendar_now();
    const auto order = [&](const std::string& name) {
      return Order{.now = now,
                   .lifetime = std::chrono::hours(900),
                   .description = {.name = name, .labels = {name}, .project = team.project}};
    };
    const auto join = [&](const Order& wanted) {
      const auto token = fulfilled(enrolment.create_tokens(wanted)).front();
      secrets_.push_back(token.secret);
      PublicKey key{};
      key.bytes.fill(++keys_);
      team.of_clients.push_back(to_hex(key));
      return fulfilled(enrolment.redeem({token.secret, key, now, "192.0.2.77"})).client;
    };
    const ClientId online = join(order(team.client_mark));
    Order careful = order(team.client_mark);
    careful.approve = true;
    (void)join(careful);
    (void)fulfilled(enrolment.revoke(join(order(team.client_mark))));
    (void)join(order(team.client_mark));
    (void)fulfilled(enrolment.create_tokens(order(team.mark)));
    Order many = order(team.mark);
    many.uses = 5;
    (void)fulfilled(enrolment.create_tokens(many));
    fulfil(enrolment.revoke_token(fulfilled(enrolment.create_tokens(many)).front().id));
    many.now = now - 1'000'000;
    many.lifetime = std::chrono::hours(1);
    (void)fulfilled(enrolment.create_tokens(many));
    team.of_clients.push_back(team.client_mark);
    const std::string address = "203.0.113." + std::to_string(keys_) + ":5555";
    team.of_clients.push_back(address);
    live_->fleet.connected(online, address, "fedge-client 0.1.0", team.client_mark, now - 60);
    live_->set_project(online, team.project);
    live_->fleet.moved(online, 123, 456);
    online_ = online;
  }

  // Runs: pending, running with a model, finished with models of rounds, paused, and stopped before it began.
  void add_runs(ApiTeam& team) {
    team.marks = {team.project, team.mark};
    const auto store = fulfilled(server::open_sqlite_store(server::run_store_path(template_)));
    const auto now = server::calendar_now();
    const auto submit = [&](const std::string& name) {
      server::RunRecord run = server::new_run(team.mark + " " + name, document_of(team, name));
      run.project = team.project;
      run.submitter = "user " + team.mark + ".ann";
      run.submitted = now - 100;
      team.marks.push_back(server::text_of(run.id));
      return fulfilled(store->submit(run));
    };
    (void)submit("pending");
    const auto running = submit("running");
    const auto finished = submit("finished");
    for (const auto& [run, rounds] : {std::pair(running, 1), std::pair(finished, 3)}) {
      FEDGE_CHECK(fulfilled(store->claim(run, now - 90)), "the run can begin");
      keep_rounds(template_, *store, {run, team}, rounds);
      auto policy = aggregation::Policy{.clients = 3};
      for (const char* client : {" one", " two", " three"}) policy.names.push_back(team.mark + client);
      (void)fulfilled(server::PolicyFile(template_, run).open(policy));
    }
    fulfil(store->set_status(finished, server::RunStatus::kFinished, team.mark + " is done", now - 10));
    keep_results(template_, {finished, team});
    fulfil(store->ask(submit("paused"), server::RunStatus::kPaused, team.mark + " waits", now - 5));
    fulfil(store->ask(submit("stopped"), server::RunStatus::kStopped, team.mark + " ends", now - 5));
    live_->open(running, team.project, watched(*live_, {running, team}, online_));
    transfers_.push_back(std::make_unique<server::RunTransfers>(live_->transfers, running, team.project));
    for (const auto object : {server::TransferObject::kModel, server::TransferObject::kUpdate}) {
      open_.push_back(transfers_.back()->open(online_, {RoundNumber(2), {}}, object, 100));
      open_.back()->wait(server::TransferWait::kTurn);
    }
    open_.back()->move(50);
  }

  std::filesystem::path folder_;
  std::filesystem::path template_;
  std::filesystem::path directory_;
  std::array<ApiTeam, 2> teams_ = {
      {{"cardiology", "qzcardqz.run", "qzcardqz-client"}, {"oncology", "qzoncoqz.run", "qzoncoqz-client"}}};
  std::vector<std::string> secrets_;
  std::uint8_t keys_ = 0;
  ClientId online_;
  std::shared_ptr<server::Live> live_ = std::make_shared<server::Live>();
  std::vector<std::unique_ptr<server::RunTransfers>> transfers_;
  std::vector<std::shared_ptr<server::Transfer>> open_;
  std::unique_ptr<server::Api> api_;
};

}  // namespace fedge::fuzz

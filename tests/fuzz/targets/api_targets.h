// Fuzz target of the admin API: requests of users with any roles, to a coordinator with two projects
// (api/coordinator.h). An input has two lines for each request: "GRANTS METHOD PATH?QUERY FIELD..." and the
// body. A FIELD is key=TEXT for an Idempotency-Key or match=TEXT for an If-Match; match=same stands for the
// present ETag. Every input begins with the same state. Cost: about a millisecond a request.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "server/api/api.h"
#include "server/audit_log.h"
#include "tests/fuzz/targets/api/answer.h"
#include "tests/fuzz/targets/api/coordinator.h"
#include "tests/fuzz/targets/api/document.h"
#include "tests/fuzz/targets/api/request.h"

namespace fedge::fuzz {

inline constexpr std::size_t kMostApiRequests = 8;  // of an input; the rest is left out
// Operations that have succeeded, in this process; lists only if they had items.
inline std::set<std::string>& succeeded_operations() {
  static std::set<std::string> operations;
  return operations;
}

class ApiInput {
 public:
  // `views`: of the state with which every input begins.
  ApiInput(ApiCoordinator& coordinator, const ApiDocument& document, const ApiViews& views)
      : coordinator_(coordinator), document_(document), views_(views) {}
  ~ApiInput() {
    if (changed_) coordinator_.restore();
  }
  ApiInput(const ApiInput&) = delete;
  ApiInput& operator=(const ApiInput&) = delete;

  void feed(std::string_view text) {
    for (std::size_t requests = 0; !text.empty() && requests < kMostApiRequests; ++requests) {
      const std::string_view head = take_until(text, '\n');
      const std::string_view body = take_until(text, '\n');
      said_ += without_escapes(without_escapes(head)) + '\n' + without_escapes(without_escapes(body)) + '\n';
      send(head, body);
    }
  }

 private:
  using Operation = ApiDocument::Operation;

  // Sends the request that the lines say, if it is one and is not left out.
  void send(std::string_view head, std::string_view body) {
    auto request = read_request(head, body);
    if (!request) return;
    const Operation* operation = document_.find(request->method, request->path);
    if (operation != nullptr && is_too_much(*operation, request->body)) return;
    if (request->if_match == "same") request->if_match = tag_of(*request);
    judge(operation, *request);
  }

  std::string tag_of(const server::ApiRequest& request) {
    const auto now =
        coordinator_.api().answer({.method = "GET", .path = request.path, .principal = request.principal});
    return now.fields.empty() ? "" : now.fields.front().second;
  }

  void judge(const Operation* operation, const server::ApiRequest& request) {
    const bool reads = request.method == "GET" || request.method == "HEAD";
    const auto before = entries();
    (void)server::most_body(request.method, request.path, request.principal);
    const server::ApiResponse answer = coordinator_.api().answer(request);
    const bool success = answer.status < 400;
    if (operation == nullptr) FEDGE_CHECK(!success, "a path that is not in the document is answered");
    if (operation != nullptr && !has_role(*operation, request.principal.grants))
      FEDGE_CHECK(answer.status == 403, "a request is answered without the role that it needs");
    success ? check_success(*operation, answer) : check_error(document_, operation, answer);
    for (const auto& [name, value] : answer.fields)
      FEDGE_CHECK((name + value).find_first_of("\r\n") == std::string::npos, "a field has a line end");
    check_secrecy(request, answer);
    if (reads || !success) {
      check_unchanged(before, answer.status);
    } else {
      changed_ = true;
      check_others(request.principal);
    }
    if (reads && success) check_again(request, answer);
    if (success && operation->id == "submitRun") check_repeated(request, answer);
  }

  void check_success(const Operation& operation, const server::ApiResponse& answer) {
    FEDGE_CHECK(answer.status == operation.success, operation.id + " has another status than documented");
    if (operation.answer != nullptr) {
      FEDGE_CHECK(answer.content_type == "application/json" && answer.file.empty(), "another type");
      const ApiJson json = parsed_answer(answer.body);
      document_.check(*operation.answer, json, operation.id);
      if (!json.contains("items") || !json["items"].empty()) succeeded_operations().insert(operation.id);
      return;
    }
    succeeded_operations().insert(operation.id);
    const std::string runs = (coordinator_.directory() / "runs").string() + "/";
    FEDGE_CHECK(answer.file.string().starts_with(runs) && std::filesystem::is_regular_file(answer.file),
                operation.id + " answers with another file than that of a run");
  }

  // Nobody sees a string of a project without a role there, unless a request of the input says it.
  void check_secrecy(const server::ApiRequest& request, const server::ApiResponse& answer) {
    std::string all = answer.body + "\n" + answer.file.string();
    for (const auto& [name, value] : answer.fields) all += "\n" + name + value;
    if (!answer.file.empty()) all += fulfilled(read_file(answer.file, 1 << 20));
    const auto never = [&](const std::vector<std::string>& strings) {
      for (const std::string& one : strings)
        FEDGE_CHECK(all.find(one) == std::string::npos || said_.find(one) != std::string::npos,
                    "an answer reveals " + one + ": " + all);
    };
    never(coordinator_.secrets());
    for (const ApiTeam& team : coordinator_.teams()) {
      if (sees(request.principal, team.project)) continue;
      never(team.marks);
      if (!clients_moved_) never(team.of_clients);
    }
  }

  std::uint64_t entries() const { return fulfilled(server::AuditLog(coordinator_.directory()).last()); }

  // A request that reads, or is refused, leaves no entry in the audit log, but for a change that failed.
  void check_unchanged(std::uint64_t before, int status) {
    if (entries() == before) return;
    changed_ = true;
    const auto last = fulfilled(server::AuditLog(coordinator_.directory()).entries_after(before)).back();
    FEDGE_CHECK(status >= 400 && status != 403 && last.event.action == server::kChangeFailed,
                "a request that was not carried out changes something: " + last.event.action);
  }

  // A change by a user without a role in a project changes nothing there.
  void check_others(const server::Principal& sender) {
    for (const ApiTeam& team : coordinator_.teams())
      if (sees(sender, team.project)) touched_.insert(team.project);
    clients_moved_ = clients_moved_ || std::ranges::all_of(coordinator_.teams(), [&](const ApiTeam& team) {
                       return sees(sender, team.project);
                     });
    for (const ApiTeam& team : coordinator_.teams()) {
      if (touched_.contains(team.project)) continue;
      const std::string now = view_of_project(coordinator_.api(), team.project);
      const std::string& before = views_.at(team.project);
      FEDGE_CHECK(now == before, "a change touches another project: " + before + " became " + now);
    }
  }

  // The same request with the answer's tag has no news, unless time has passed.
  void check_again(server::ApiRequest request, const server::ApiResponse& answer) {
    if (!answer.file.empty()) return;
    request.if_none_match = answer.fields.at(0).second;
    const server::ApiResponse again = coordinator_.api().answer(request);
    if (again.status == 304) return FEDGE_CHECK(again.body.empty(), "an answer without news has a body");
    FEDGE_CHECK(again.status == answer.status && again.body != answer.body, "a tag says too little");
    ApiJson first = parsed_answer(answer.body);
    ApiJson second = parsed_answer(again.body);
    remove_passing(first);
    remove_passing(second);
    FEDGE_CHECK(first == second, "the same request has two answers: " + first.dump() + second.dump());
  }

  // A submission that is repeated with its key is the same run.
  void check_repeated(const server::ApiRequest& request, const server::ApiResponse& answer) {
    if (request.idempotency_key.empty()) return;
    const server::ApiResponse again = coordinator_.api().answer(request);
    FEDGE_CHECK(again.status == 201, "a repeated submission is refused");
    FEDGE_CHECK(parsed_answer(again.body)["run"]["run"] == parsed_answer(answer.body)["run"]["run"],
                "a repeated submission is another run");
  }

  ApiCoordinator& coordinator_;
  const ApiDocument& document_;
  const ApiViews& views_;
  std::string said_;               // by the requests so far
  bool changed_ = false;           // the state
  bool clients_moved_ = false;     // perhaps, from one project to another
  std::set<std::string> touched_;  // projects
};

inline void feed_admin_api(std::span<const std::byte> bytes) {
  static ApiCoordinator coordinator;
  static const ApiDocument document;
  static const ApiViews views = [] {
    ApiViews all;
    for (const ApiTeam& team : coordinator.teams())
      all[team.project] = view_of_project(coordinator.api(), team.project);
    return all;
  }();
  ApiInput(coordinator, document, views)
      .feed(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace fedge::fuzz

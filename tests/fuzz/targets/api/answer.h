// What must hold of single answers of the admin API, for its fuzz target. Pure, but for view_of_project().
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/check.h"
#include "server/api/api.h"
#include "tests/fuzz/targets/api/document.h"

namespace fedge::fuzz {

// The roles that the document asks for, independently of Principal.
inline bool has_role(const ApiDocument::Operation& operation, const std::vector<server::Grant>& grants) {
  return std::ranges::any_of(grants, [&](const server::Grant& grant) {
    return grant.role >= operation.role && (!operation.everywhere || grant.project == server::kAllProjects);
  });
}
inline bool sees(const server::Principal& sender, const std::string& project) {
  return std::ranges::any_of(sender.grants, [&](const server::Grant& grant) {
    return grant.project == project || grant.project == server::kAllProjects;
  });
}

inline void check_error(const ApiDocument& document, const ApiDocument::Operation* operation,
                        const server::ApiResponse& answer) {
  const ApiJson problem = parsed_answer(answer.body);
  document.check_problem(problem);
  FEDGE_CHECK(answer.content_type == "application/problem+json", "an error has another type");
  FEDGE_CHECK(problem["status"] == answer.status && problem["detail"] != "", "an error says nothing");
  if (answer.status < 500) return;
  // No coordinator runs that sends events or replays runs; a project has too many runs that have not ended;
  // the audit log lacks the entry that the sender expects; the key was announced by an earlier request, and
  // no coordinator has told its clients.
  static const std::map<std::string, int> kFailures = {{"watchEvents", 503},      {"startVerification", 503},
                                                       {"showVerification", 503}, {"rotateKey", 503},
                                                       {"submitRun", 507},        {"verifyAudit", 500}};
  const auto known = operation == nullptr ? kFailures.end() : kFailures.find(operation->id);
  FEDGE_CHECK(known != kFailures.end() && known->second == answer.status,
              "the coordinator fails: " + answer.body);
}

// Removes what passes with time, and the place in the queue, which depends on the runs of all projects.
inline void remove_passing(ApiJson& json) {
  if (json.is_object())
    for (const char* field :
         {"last_seen", "training_seconds", "upload_seconds", "memory_bytes", "bytes_per_second", "position"})
      json.erase(field);
  if (json.is_structured())
    for (ApiJson& part : json) remove_passing(part);
}

// Returns an administrator's view of a project.
inline std::string view_of_project(server::Api& api, const std::string& project) {
  const auto get = [&](const std::string& path, const std::string& query) {
    const server::ApiResponse answer = api.answer(
        {.method = "GET",
         .path = server::kApiRoot + path,
         .query = query,
         .principal = {{"user root", "192.0.2.2"}, {{server::kAllProjects, server::Role::kAdmin}}}});
    FEDGE_CHECK(answer.status == 200, "an administrator cannot look: " + answer.body);
    ApiJson json = parsed_answer(answer.body);
    remove_passing(json);
    return json;
  };
  std::string view;
  for (const char* list : {"/clients", "/runs", "/transfers"})
    view += get(list, "limit=1000&project=" + project).dump();
  const ApiJson tokens = get("/join-tokens", "limit=1000");
  for (const ApiJson& token : tokens["items"])
    if (token["project"] == project) view += token.dump();
  return view;
}
using ApiViews = std::map<std::string, std::string>;  // by project

}  // namespace fedge::fuzz

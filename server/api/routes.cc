#include <algorithm>
#include <string_view>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/detail/json.h"
#include "core/text.h"
#include "server/api/detail/call.h"
#include "server/http/http.h"

namespace fedge::server {
namespace {

constexpr int kMaxBodyLevels = 8;

std::vector<std::string> segments(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Returns the values of the template's parameters, or nothing if the path does not match.
std::optional<std::map<std::string, std::string>> match(const std::string& pattern, const std::string& path) {
  const auto wanted = segments(pattern);
  const auto given = segments(path);
  if (wanted.size() != given.size()) return std::nullopt;
  std::map<std::string, std::string> values;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].starts_with('{')) {
      if (wanted[i] != given[i]) return std::nullopt;
      continue;
    }
    auto value = percent_decoded(given[i]);
    if (!value || value->empty()) return std::nullopt;
    values.emplace(wanted[i].substr(1, wanted[i].size() - 2), std::move(*value));
  }
  return values;
}

Result<std::map<std::string, std::string>> query_of(const ApiRoute& route, const std::string& query) {
  std::map<std::string, std::string> values;
  for (std::size_t begin = 0; begin < query.size();) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    const std::string one = query.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = std::min(one.find('='), one.size());
    const auto name = percent_decoded(one.substr(0, equals), /*plus_is_space=*/true);
    const auto value = percent_decoded(one.substr(std::min(equals + 1, one.size())), /*plus_is_space=*/true);
    if (!name || !value) return invalid("the query of the request has an incomplete escape");
    if (std::ranges::find(route.query, *name, &Parameter::name) == route.query.end()) {
      std::string known;
      for (const Parameter& parameter : route.query) known += " " + std::string(parameter.name);
      return invalid("the request has an unknown parameter '" + clean_text(*name, 80) +
                     "'; known parameters:" + (known.empty() ? " none" : known));
    }
    if (!values.emplace(*name, *value).second)
      return invalid("the request has the parameter '" + *name + "' twice");
  }
  return values;
}

Result<Json> body_of(const ApiRoute& route, const std::string& text) {
  const Schema* schema = find_schema(route.body);
  if (schema == nullptr) {
    if (!text.empty() && text != "{}") return invalid("this request has no body");
    return Json::object();
  }
  if (text.empty()) {
    FEDGE_TRY_VOID(check_body(Json::object(), *schema));
    return Json::object();
  }
  Json body = parse_ordered_json(text, kMaxBodyLevels);
  if (body.is_discarded()) return invalid("the body of the request is not JSON");
  FEDGE_TRY_VOID(check_body(body, *schema));
  return body;
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kRefused:
    case ErrorCode::kStale:
      return 409;
    case ErrorCode::kUnsupported:
      return 422;
    case ErrorCode::kResource:
      return 507;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kCorrupt:
      break;
  }
  return 500;
}

// An error of a file with several errors has several lines.
std::string clean_lines(const std::string& text) {
  std::string clean;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    clean += (begin == 0 ? "" : "\n") + clean_text(text.substr(begin, end - begin), text.size());
    begin = end + 1;
  }
  return clean;
}

std::string short_hash(const std::string& text) { return to_hex(sha256(text)).substr(0, 32); }

// Tags the answer with two hashes: of what a PATCH can change, and of all. Without the first part, the state
// of a client that is online would change between any two requests.
ApiResponse tagged(const ApiRequest& request, ApiResponse response, const Json& settable) {
  const std::string whole = short_hash(response.body);
  const std::string tag =
      "\"" + (settable.is_null() ? whole : short_hash(json_text(settable))) + "-" + whole + "\"";
  if (request.if_none_match == tag) response = {.status = 304};
  response.fields.emplace_back("ETag", tag);
  return response;
}

}  // namespace

const std::vector<ApiRoute>& all_routes() {
  static const std::vector<ApiRoute> routes = [] {
    std::vector<ApiRoute> all;
    for (auto part : {client_routes, join_token_routes, run_routes, model_routes, verification_routes,
                      key_routes, live_routes, disagreement_routes, user_routes, audit_routes})
      std::ranges::move(part(), std::back_inserter(all));
    return all;
  }();
  return routes;
}

std::vector<RouteInfo> api_routes() {
  std::vector<RouteInfo> list;
  for (const ApiRoute& route : all_routes())
    list.push_back({route.method, kApiRoot + std::string(route.path), route.operation, route.summary,
                    route.role, route.everywhere});
  return list;
}

ApiResponse problem(int status, const Error& error) {
  constexpr std::size_t kMostDetail = 8000;
  Json json;
  json["title"] = phrase_of(status);
  json["status"] = status;
  json["detail"] = clean_lines(error.message.substr(0, kMostDetail));
  json["code"] = to_string(error.code);
  return {status, json_text(json), "application/problem+json"};
}

std::size_t most_body(const std::string& method, const std::string& path, const Principal& sender) {
  for (const ApiRoute& route : all_routes()) {
    if (method != route.method || !match(kApiRoot + std::string(route.path), path)) continue;
    const bool may = route.everywhere ? sender.may_everywhere(route.role) : sender.may_somewhere(route.role);
    if (*route.body == '\0') return 2;  // "{}" is as good as none
    return may && std::string_view(route.operation) == "submitRun" ? kMaxApiBody : kMaxOtherBody;
  }
  return 0;
}

class Api::Impl {
 public:
  explicit Impl(ApiParts parts) : stores_(std::move(parts)) {}

  Result<void> tidy_up(UnixSeconds now) { return remove_old_runs(stores_, now); }

  ApiResponse answer(const ApiRequest& request) {
    std::string allowed;
    for (const ApiRoute& route : all_routes()) {
      auto path = match(kApiRoot + std::string(route.path), request.path);
      if (!path) continue;
      const bool same =
          request.method == route.method || (request.method == "HEAD" && std::string("GET") == route.method);
      if (same) return answer_on(route, request, std::move(*path));
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    }
    if (allowed.empty())
      return problem(404, {ErrorCode::kNotFound, "there is no such path; " + std::string(kApiRoot) +
                                                     "/openapi.json lists all paths"});
    ApiResponse response = problem(405, {ErrorCode::kUnsupported, "this path accepts only " + allowed});
    response.fields.emplace_back("Allow", allowed);
    return response;
  }

 private:
  ApiResponse answer_on(const ApiRoute& route, const ApiRequest& request,
                        std::map<std::string, std::string> path) {
    const Principal& sender = request.principal;
    if (route.everywhere ? !sender.may_everywhere(route.role) : !sender.may_somewhere(route.role))
      return problem(403,
                     {ErrorCode::kRefused, sender.actor.name + " needs the role " + name_of(route.role) +
                                               (route.everywhere ? " in all projects" : "") + " for this"});
    if (!request.if_match.empty() && request.method != "PATCH")
      return problem(400, invalid("If-Match is accepted only with PATCH"));
    if (!request.if_match.empty() && request.if_match != "*" && !is_unchanged(request))
      return problem(412, {ErrorCode::kStale, "it has changed since it was read; read it again"});
    bool forbidden = false;
    const auto reply = handle(route, request, std::move(path), forbidden);
    if (!reply) return problem(forbidden ? 403 : status_of(reply.error().code), reply.error());
    if (!reply->file.empty())
      return {.content_type = "application/octet-stream",
              .fields = {{"Content-Disposition",
                          "attachment; filename=\"" + reply->file.filename().string() + "\""}},
              .file = reply->file};
    ApiResponse response{reply->status, json_text(reply->json)};
    return request.method == "GET" || request.method == "HEAD"
               ? tagged(request, std::move(response), reply->settable)
               : response;
  }

  Result<Reply> handle(const ApiRoute& route, const ApiRequest& request,
                       std::map<std::string, std::string> path, bool& forbidden) {
    FEDGE_TRY(query, query_of(route, request.query));
    FEDGE_TRY(body, body_of(route, request.body));
    Call call{request, stores_, std::move(path), std::move(query), std::move(body), forbidden};
    return route.handler(call);
  }

  // Compares the tag with that of the object's present state: the GET of the same path.
  bool is_unchanged(const ApiRequest& request) {
    const ApiResponse now = answer({.method = "GET", .path = request.path, .principal = request.principal});
    return std::ranges::any_of(now.fields, [&](const auto& field) {
      return field.first == "ETag" && field.second.substr(0, field.second.find('-')) ==
                                          request.if_match.substr(0, request.if_match.find('-'));
    });
  }

  ApiStores stores_;
};

Api::Api(ApiParts parts) : impl_(std::make_unique<Impl>(std::move(parts))) {}
Api::~Api() = default;
ApiResponse Api::answer(const ApiRequest& request) { return impl_->answer(request); }
Result<void> Api::tidy_up(UnixSeconds now) { return impl_->tidy_up(now); }

}  // namespace fedge::server

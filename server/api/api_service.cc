#include "server/api/api_service.h"

#include <unistd.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "protocol/session/endpoint.h"
#include "server/access/calendar.h"

namespace fedge::server {
namespace {

constexpr const char* kDocumentPath = "/api/v1/openapi.json";
constexpr std::string_view kScheme = "Bearer ";

HttpResponse http_of(ApiResponse response) {
  HttpResponse http{.status = response.status,
                    .body = std::move(response.body),
                    .content_type = std::move(response.content_type),
                    .fields = std::move(response.fields)};
  http.fields.emplace_back("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
  return http;
}

HttpResponse refusal(int status, Error error) { return http_of(problem(status, error)); }

HttpResponse unauthorised(const std::string& why) {
  HttpResponse response = refusal(401, {ErrorCode::kRefused, why});
  response.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"fedge\"");
  return response;
}

std::string text_field(const HttpRequest& request, std::string_view name) {
  const std::string* value = request.field(name);
  return value == nullptr ? std::string() : *value;
}

bool reads(const HttpRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

}  // namespace

ApiService::ApiService(const ApiParts& parts)
    : access_(parts.data_directory),
      wrong_tokens_(kWrongAccessTokensPerMinute, std::chrono::minutes(1)),
      reading_(parts),
      writing_(parts) {}

std::variant<Principal, HttpResponse> ApiService::sender_of(const HttpRequest& request, bool counted) {
  if (request.peer.user) {
    if (*request.peer.user == ::geteuid() || *request.peer.user == 0)
      return local_administrator(*request.peer.user);
    return refusal(403, {ErrorCode::kRefused, "only the coordinator's user and root may use this socket"});
  }
  const std::string household = protocol::household(request.peer.address);
  const Time now(std::chrono::steady_clock::now() - started_);
  if (wrong_tokens_.full(household, now))
    return refusal(429,
                   {ErrorCode::kResource,
                    "too many requests with a wrong access token came from this address; wait a minute"});
  const std::string* field = request.field("authorization");
  if (field == nullptr || !field->starts_with(kScheme))
    return unauthorised(
        "the request needs the header 'Authorization: Bearer TOKEN' with an access token; an "
        "administrator creates one with: fedge user token create");
  auto sender = access_.authenticate(field->substr(kScheme.size()), calendar_now());
  if (sender) {
    sender->actor.address = request.peer.address;
    return std::move(*sender);
  }
  if (sender.error().code != ErrorCode::kRefused) return refusal(503, sender.error());
  if (counted) wrong_tokens_.count(household, now);
  return unauthorised(sender.error().message);
}

std::variant<std::size_t, HttpResponse> ApiService::admit(const HttpRequest& head) {
  if (head.path() == kDocumentPath) return std::size_t{0};
  auto sender = sender_of(head, /*counted=*/true);
  if (auto* refused = std::get_if<HttpResponse>(&sender)) return std::move(*refused);
  if (head.announced_body > 0 && text_field(head, "content-type").substr(0, 16) != "application/json")
    return refusal(415, {ErrorCode::kUnsupported, "the body of a request must be application/json"});
  return kMaxApiBody;
}

void ApiService::serve(HttpRequest request, HttpAnswer answer) {
  if (request.path() == kDocumentPath)
    return answer(http_of(reads(request)
                              ? ApiResponse{.body = openapi_document()}
                              : problem(405, {ErrorCode::kUnsupported, "this path accepts only GET"})));
  // Again, because the token may have been revoked while the body arrived.
  auto sender = sender_of(request, /*counted=*/false);
  if (auto* refused = std::get_if<HttpResponse>(&sender)) return answer(std::move(*refused));
  ApiRequest call{.method = request.method,
                  .path = request.path(),
                  .query = request.query(),
                  .body = std::move(request.body),
                  .principal = std::get<Principal>(std::move(sender)),
                  .idempotency_key = text_field(request, "idempotency-key"),
                  .if_match = text_field(request, "if-match"),
                  .if_none_match = text_field(request, "if-none-match")};
  Thread& thread = reads(request) ? reading_ : writing_;
  thread.worker.post([&api = thread.api, call = std::move(call), answer = std::move(answer)] {
    answer(http_of(api.answer(call)));
  });
}

void ApiService::stop() {
  for (Thread* thread : {&reading_, &writing_}) {
    thread->worker.stop();
    thread->worker.join();
  }
}

}  // namespace fedge::server

#include "server/api/api_service.h"

#include <unistd.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "protocol/session/endpoint.h"
#include "server/access/calendar.h"
#include "server/access/oidc/token_verifier.h"
#include "server/api/dashboard.h"

namespace fedge::server {
namespace {

constexpr const char* kDocumentPath = "/api/v1/openapi.json";
constexpr const char* kEventsPath = "/api/v1/events";
constexpr std::chrono::hours kTidyUp{1};
constexpr std::string_view kScheme = "Bearer ";
constexpr std::chrono::seconds kLookAtKeys{1};

HttpResponse http_of(ApiResponse response) {
  HttpResponse http{.status = response.status,
                    .body = std::move(response.body),
                    .content_type = std::move(response.content_type),
                    .fields = std::move(response.fields),
                    .file = std::move(response.file)};
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

ApiService::ApiService(boost::asio::io_context& io, const ApiParts& parts,
                       std::function<void(const Event&)> report)
    : access_(parts.data_directory, AccessControl::Waiting::kNever),
      wrong_tokens_(kWrongAccessTokensPerMinute, std::chrono::minutes(1)),
      tidy_timer_(io),
      report_(std::move(report)),
      reading_(parts),
      writing_(parts),
      identity_provider_(parts.identity_provider),
      keys_timer_(io) {
  access_.trust(identity_provider_);
  if (identity_provider_) look_at_keys();
  if (!parts.live) return;
  if (parts.keep_days > 0) tidy_up();
  streams_ = std::make_shared<EventStreams>(
      io, parts.live, [this](const HttpRequest& request) { return sender_of(request, access_); });
  streams_->start();
}

std::variant<Principal, HttpResponse> ApiService::sender_of(const HttpRequest& request,
                                                            AccessControl& access) {
  if (request.peer.user) {
    if (*request.peer.user == ::geteuid() || *request.peer.user == 0)
      return local_administrator(*request.peer.user);
    return refusal(403, {ErrorCode::kRefused, "only the coordinator's user and root may use this socket"});
  }
  const std::string* field = request.field("authorization");
  if (field == nullptr || !field->starts_with(kScheme))
    return unauthorised(
        "the request needs the header 'Authorization: Bearer TOKEN' with an access token; an "
        "administrator creates one with: fedge user token create");
  auto sender = access.authenticate(field->substr(kScheme.size()), calendar_now());
  if (!sender)
    return sender.error().code == ErrorCode::kRefused ? unauthorised(sender.error().message)
                                                      : refusal(503, sender.error());
  sender->actor.address = request.peer.address;
  return std::move(*sender);
}

std::variant<HttpAdmission, HttpResponse> ApiService::admit(const HttpRequest& head) {
  if (head.path() == kDocumentPath || is_of_dashboard(head.path())) return HttpAdmission{};
  const std::string household = protocol::household(head.peer.address);
  const Time now(std::chrono::steady_clock::now() - started_);
  if (!head.peer.user && wrong_tokens_.full(household, now))
    return refusal(429,
                   {ErrorCode::kResource,
                    "too many requests with a wrong access token came from this address; wait a minute"});
  auto sender = sender_of(head, access_);
  if (auto* refused = std::get_if<HttpResponse>(&sender)) {
    const bool wrong = refused->status == 401 && head.field("authorization") != nullptr;
    if (wrong) wrong_tokens_.count(household, now);
    return std::move(*refused);
  }
  if (head.announced_body > 0 && text_field(head, "content-type").substr(0, 16) != "application/json")
    return refusal(415, {ErrorCode::kUnsupported, "the body of a request must be application/json"});
  const std::size_t most = most_body(head.method, head.path(), std::get<Principal>(sender));
  if (head.announced_body > most)
    return refusal(
        413, {ErrorCode::kResource, "the body of the request has " + std::to_string(head.announced_body) +
                                        " bytes; at most " + std::to_string(most) + " are accepted"});
  return HttpAdmission{most, /*known=*/true};
}

void ApiService::serve(HttpRequest request, HttpAnswer answer) {
  if (is_of_dashboard(request.path())) return answer(dashboard_answer(request));
  if (request.path() == kDocumentPath)
    return answer(http_of(reads(request)
                              ? ApiResponse{.body = openapi_document()}
                              : problem(405, {ErrorCode::kUnsupported, "this path accepts only GET"})));
  if (streams_ && request.path() == kEventsPath && reads(request)) return watch(request, answer);
  Thread& thread = reads(request) ? reading_ : writing_;
  thread.worker->post([&thread, request = std::move(request), answer = std::move(answer)]() mutable {
    auto sender = sender_of(request, thread.access);
    if (auto* refused = std::get_if<HttpResponse>(&sender)) return answer(std::move(*refused));
    answer(http_of(thread.api.answer({.method = request.method,
                                      .path = request.path(),
                                      .query = request.query(),
                                      .body = std::move(request.body),
                                      .principal = std::get<Principal>(std::move(sender)),
                                      .idempotency_key = text_field(request, "idempotency-key"),
                                      .if_match = text_field(request, "if-match"),
                                      .if_none_match = text_field(request, "if-none-match")})));
  });
}

void ApiService::watch(const HttpRequest& request, const HttpAnswer& answer) {
  auto sender = sender_of(request, access_);
  if (auto* refused = std::get_if<HttpResponse>(&sender)) return answer(std::move(*refused));
  const Principal& watcher = std::get<Principal>(sender);
  if (!watcher.may_somewhere(Role::kViewer))
    return answer(
        refusal(403, {ErrorCode::kRefused, watcher.actor.name + " needs the role viewer for this"}));
  auto opened = streams_->open(request, watcher);
  const int status = !opened && opened.error().code == ErrorCode::kResource ? 503 : 400;
  answer(opened ? std::move(*opened) : refusal(status, opened.error()));
}

void ApiService::tidy_up() {
  writing_.worker->post([this] {
    if (const auto done = writing_.api.tidy_up(calendar_now()); !done)
      report_(Event{Severity::kError, "retention.failed", {}}.with("reason", done.error().message));
  });
  tidy_timer_.after(kTidyUp, [this] { tidy_up(); });
}

void ApiService::look_at_keys() {
  identity_provider_->refresh();
  keys_timer_.after(kLookAtKeys, [this] { look_at_keys(); });
}

void ApiService::end_streams() {
  keys_timer_.cancel();
  tidy_timer_.cancel();
  if (streams_) streams_->stop();
}

void ApiService::stop() {
  for (Thread* thread : {&reading_, &writing_}) {
    thread->worker->stop();
    thread->worker->join();
  }
}

void ApiService::drop() {
  for (Thread* thread : {&reading_, &writing_}) thread->worker.reset();
}

}  // namespace fedge::server

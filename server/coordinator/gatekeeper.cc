#include "server/coordinator/gatekeeper.h"

#include <chrono>
#include <utility>

namespace fedge::server {
namespace {

UnixSeconds calendar_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Time now() {
  return Time(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace

Gatekeeper::Gatekeeper(Enrolment enrolment, std::string software, const ArrivalRules& arrivals)
    : enrolment_(std::move(enrolment)), arrivals_(arrivals), software_(std::move(software)) {}

void Gatekeeper::on_admitted(std::function<void(ClientId, std::shared_ptr<protocol::Link>)> admitted) {
  admitted_ = std::move(admitted);
}

void Gatekeeper::on_event(std::function<void(const Event&)> report) { report_ = std::move(report); }

void Gatekeeper::receive(std::shared_ptr<protocol::Link> link) {
  waiting_.insert(link);
  const std::weak_ptr<protocol::Link> weak = link;
  link->set_callbacks({.on_message =
                           [this, weak](const protocol::Message& message) {
                             const auto alive = weak.lock();
                             if (!alive || !waiting_.contains(alive)) return;
                             if (const auto* hello = std::get_if<protocol::Hello>(&message))
                               return greet(alive, *hello);
                             refuse(alive, invalid(std::string("the first message must be hello, not ") +
                                                   protocol::name_of(message)));
                           },
                       .on_closed =
                           [this, weak](const Error&) {
                             if (const auto alive = weak.lock()) waiting_.erase(alive);
                           }});
}

void Gatekeeper::greet(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello) {
  if (hello.min_version > protocol::kProtocolVersion || hello.max_version < protocol::kProtocolVersion)
    return refuse(link, {ErrorCode::kUnsupported, "this coordinator speaks protocol version " +
                                                      std::to_string(protocol::kProtocolVersion) +
                                                      ", the client " + std::to_string(hello.min_version) +
                                                      " to " + std::to_string(hello.max_version)});
  if (const auto window = arrivals_.arrive(now())) return send_away(link, *window);
  const auto client = hello.token.empty() ? enrolment_.authenticate(link->peer())
                                          : enrolment_.redeem(hello.token, link->peer(), calendar_now());
  if (!client) return refuse(link, client.error());
  const bool joining = !hello.token.empty();
  waiting_.erase(link);
  if (!joining) link->authorise();
  link->send(protocol::Welcome{
      .version = protocol::kProtocolVersion, .features = {}, .software = software_, .client = *client});
  report_(Event{Severity::kInfo, joining ? "client.enrolled" : "client.arrived", {}}
              .with("client", std::int64_t{client->value()})
              .with("address", link->peer_address())
              .with("software", hello.software));
  if (joining) return link->close("enrolled");
  admitted_(*client, link);
}

void Gatekeeper::refuse(const std::shared_ptr<protocol::Link>& link, const Error& error) {
  waiting_.erase(link);
  report_(Event{Severity::kWarning, "client.refused", {}}
              .with("address", link->peer_address())
              .with("reason", error.message));
  // What is wrong on this machine is for its log, not for a stranger.
  const bool ours = error.code == ErrorCode::kUnavailable;
  link->send(protocol::Goodbye{
      error.code, ours ? "the coordinator cannot check who you are now; try again later" : error.message});
  link->close(error.message);
}

void Gatekeeper::send_away(const std::shared_ptr<protocol::Link>& link, Duration window) {
  waiting_.erase(link);
  report_(Event{Severity::kDebug, "client.sent_away", {}}
              .with("address", link->peer_address())
              .with("window_seconds", to_seconds(window)));
  link->send(
      protocol::Goodbye{ErrorCode::kUnavailable, "too many clients come at once; come back later", window});
  link->close("too many clients come at once");
}

void Gatekeeper::close(const std::string& reason) {
  const Duration window = arrivals_.window(waiting_.size());
  for (const auto& link : std::exchange(waiting_, {})) {
    link->send(protocol::Goodbye{ErrorCode::kUnavailable, reason, window});
    link->close(reason);
  }
}

}  // namespace fedge::server

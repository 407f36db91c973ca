// ApiService serves the admin API over HTTP. A request over HTTPS needs an access token, or a token of the
// organisation's identity provider, in its header; wrong tokens are limited per address. A request through
// the Unix socket comes from a user of this machine: the coordinator's own user and root are administrators.
// Authentication happens before a body is read, and again when the request's turn comes: a revocation before
// it counts. Requests that read and requests that write have a thread each, because writing waits for the
// disk. There are no cookies, so other web sites cannot send requests in a user's name. Streams of events
// (EventStreams) need neither thread.
#pragma once

#include <functional>
#include <memory>

#include "core/event.h"
#include "protocol/session/loop.h"
#include "server/access/rate_limiter.h"
#include "server/access_control.h"
#include "server/api/api.h"
#include "server/api/event_streams.h"
#include "server/http/http.h"

namespace fedge::server {

inline constexpr std::size_t kWrongAccessTokensPerMinute = 10;  // from one address

class ApiService final : public HttpService {
 public:
  // `io` runs the thread on which the service is called.
  // `report` gets what goes wrong without a request, from any thread.
  ApiService(
      boost::asio::io_context& io, const ApiParts& parts,
      std::function<void(const Event&)> report = [](const Event&) {});

  std::variant<HttpAdmission, HttpResponse> admit(const HttpRequest& head) override;
  void serve(HttpRequest request, HttpAnswer answer) override;
  // Ends the streams of events and the looks at the key set; on the server's thread.
  void end_streams();
  // Waits for the requests that have begun; the others are not answered.
  void stop();
  // Destroys the requests that have not begun, which own their connections. After the server's thread has
  // ended.
  void drop();

 private:
  // The sender as `access` knows it, or the answer that refuses it.
  static std::variant<Principal, HttpResponse> sender_of(const HttpRequest& request, AccessControl& access);

  void watch(const HttpRequest& request, const HttpAnswer& answer);
  // Now and every hour.
  void tidy_up();
  // Runs every second: a change of the identity provider's keys is reported also while nobody sends requests.
  void look_at_keys();

  AccessControl access_;  // for admit() and streams: does not wait for the disk
  RateLimiter wrong_tokens_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  struct Thread {
    explicit Thread(const ApiParts& parts)
        : access(parts.data_directory), api(parts), worker(std::make_unique<protocol::Worker>()) {
      access.trust(parts.identity_provider);
    }
    AccessControl access;
    Api api;
    std::unique_ptr<protocol::Worker> worker;  // after what its jobs use
  };
  std::shared_ptr<EventStreams> streams_;  // null without a running coordinator
  protocol::Timer tidy_timer_;
  std::function<void(const Event&)> report_;
  Thread reading_;
  Thread writing_;
  std::shared_ptr<TokenVerifier> identity_provider_;
  protocol::Timer keys_timer_;
};

}  // namespace fedge::server

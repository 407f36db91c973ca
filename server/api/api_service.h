// ApiService serves the admin API over HTTP. A request over HTTPS needs an access token in its header; wrong
// tokens are limited per address. A request through the Unix socket comes from a user of this machine: the
// coordinator's own user and root are administrators. Authentication happens before a body is read. Requests
// that read and requests that write have a thread each, because writing waits for the disk. There are no
// cookies, so other web sites cannot send requests in a user's name.
#pragma once

#include <memory>

#include "protocol/session/loop.h"
#include "server/access/rate_limiter.h"
#include "server/access_control.h"
#include "server/api/api.h"
#include "server/http/http.h"

namespace fedge::server {

inline constexpr std::size_t kWrongAccessTokensPerMinute = 10;  // from one address

class ApiService final : public HttpService {
 public:
  explicit ApiService(const ApiParts& parts);

  std::variant<std::size_t, HttpResponse> admit(const HttpRequest& head) override;
  void serve(HttpRequest request, HttpAnswer answer) override;
  // Drops the requests that have not begun and waits for the others.
  void stop();

 private:
  // The sender, or the answer that refuses it. `counted`: a wrong token counts towards the limit.
  std::variant<Principal, HttpResponse> sender_of(const HttpRequest& request, bool counted);

  AccessControl access_;
  RateLimiter wrong_tokens_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  struct Thread {
    explicit Thread(const ApiParts& parts) : api(parts) {}
    Api api;
    protocol::Worker worker;  // after `api`, which its jobs use
  };
  Thread reading_;
  Thread writing_;
};

}  // namespace fedge::server

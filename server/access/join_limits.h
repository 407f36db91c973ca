// JoinLimits: how often somebody may try to join, and how many may. Wrong tokens are counted for each
// address; an address that has shown too many is not listened to for a while, whatever it shows. Enrolments
// are counted for each address, for each token and in all. Pure: told the time, on a clock that never jumps;
// memory bounded by RateLimiter.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "server/access/rate_limiter.h"

namespace fedge::server {

struct JoinRates {
  std::size_t wrong_tokens_per_minute = 5;  // from one address
  std::size_t enrolments_per_hour = 10'000;
  std::size_t enrolments_per_hour_per_address = 1'000;
  std::size_t enrolments_per_hour_per_token = 1'000;
};

// Who tries to join with what: an address as Admission counts it, and a hash of the token.
struct JoinAttempt {
  std::string address;
  std::string token_hash;
};

class JoinLimits {
 public:
  static constexpr std::chrono::hours kLongest{1};  // that a rate looks back

  explicit JoinLimits(const JoinRates& rates);

  // Why this attempt is not even looked at; kResource, so that an honest client comes again later.
  std::optional<Error> objection(const JoinAttempt& attempt, Time now);
  // The token was wrong; true if this address will not be listened to for a while.
  bool wrong(const JoinAttempt& attempt, Time now);
  void enrolled(const JoinAttempt& attempt, Time now);

 private:
  RateLimiter wrong_by_address_;
  RateLimiter enrolled_;
  RateLimiter enrolled_by_address_;
  RateLimiter enrolled_by_token_;
};

}  // namespace fedge::server

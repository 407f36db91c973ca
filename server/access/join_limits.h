// JoinLimits bounds wrong join tokens and enrolments. Wrong tokens are counted per address; an address that
// reaches the limit is refused for up to a minute, even with a valid token. Enrolments are counted per
// address, per token and in total. Pure: the caller passes a monotonic time. RateLimiter bounds the memory.
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

// One join attempt: the address as protocol::household() gives it, and the hash of the token.
struct JoinAttempt {
  std::string address;
  std::string token_hash;
};

class JoinLimits {
 public:
  // Why an attempt is refused without checking its token.
  struct Objection {
    Error error;                    // kResource: an honest client retries later
    const char* reached = nullptr;  // key of the enrolment limit, at its first refusal within an hour
  };

  static constexpr std::chrono::hours kLongest{1};  // longest window of a rate

  explicit JoinLimits(const JoinRates& rates);

  // Returns nothing if the attempt's token may be checked.
  std::optional<Objection> objection(const JoinAttempt& attempt, Time now);
  // Counts a wrong token. Returns true if the address is refused from this attempt on.
  bool wrong(const JoinAttempt& attempt, Time now);
  void enrolled(const JoinAttempt& attempt, Time now);

 private:
  Objection reached(const char* limit, const std::string& key, const char* what, Time now);

  RateLimiter wrong_by_address_;
  RateLimiter enrolled_;
  RateLimiter enrolled_by_address_;
  RateLimiter enrolled_by_token_;
  RateLimiter reported_;  // enrolment limits that refused a join, by limit and address or token
};

}  // namespace fedge::server

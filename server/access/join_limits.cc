#include "server/access/join_limits.h"

namespace fedge::server {
namespace {

constexpr std::chrono::minutes kMinute{1};
constexpr std::chrono::hours kHour = JoinLimits::kLongest;
const std::string kAll;  // the single key of the limit over all clients

}  // namespace

JoinLimits::JoinLimits(const JoinRates& rates)
    : wrong_by_address_(rates.wrong_tokens_per_minute, kMinute),
      enrolled_(rates.enrolments_per_hour, kHour),
      enrolled_by_address_(rates.enrolments_per_hour_per_address, kHour),
      enrolled_by_token_(rates.enrolments_per_hour_per_token, kHour),
      reported_(1, kHour) {}

std::optional<JoinLimits::Objection> JoinLimits::objection(const JoinAttempt& attempt, Time now) {
  if (wrong_by_address_.full(attempt.address, now))
    return Objection{
        {ErrorCode::kResource, "too many wrong join tokens came from this address; try again in a minute"}};
  if (enrolled_.full(kAll, now))
    return reached("limits.enrolments_per_hour", kAll,
                   "too many clients joined within the last hour; try again later", now);
  if (enrolled_by_address_.full(attempt.address, now))
    return reached("limits.enrolments_per_hour_per_address", attempt.address,
                   "too many clients joined from this address within the last hour; try again later", now);
  if (enrolled_by_token_.full(attempt.token_hash, now))
    return reached("limits.enrolments_per_hour_per_token", attempt.token_hash,
                   "too many clients joined with this token within the last hour; try again later", now);
  return std::nullopt;
}

JoinLimits::Objection JoinLimits::reached(const char* limit, const std::string& key, const char* what,
                                          Time now) {
  const std::string name = limit + (" " + key);
  const bool begins = !reported_.full(name, now);
  if (begins) reported_.count(name, now);
  return {{ErrorCode::kResource, what}, begins ? limit : nullptr};
}

bool JoinLimits::wrong(const JoinAttempt& attempt, Time now) {
  return wrong_by_address_.count(attempt.address, now);
}

void JoinLimits::enrolled(const JoinAttempt& attempt, Time now) {
  enrolled_.count(kAll, now);
  enrolled_by_address_.count(attempt.address, now);
  enrolled_by_token_.count(attempt.token_hash, now);
}

}  // namespace fedge::server

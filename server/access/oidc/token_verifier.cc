#include "server/access/oidc/token_verifier.h"

#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/access/oidc/signed_token.h"

namespace fedge::server {
namespace {

// File systems note changes with a resolution of up to two seconds. A file that was changed more recently
// when it was read may change again without a sign.
constexpr std::int64_t kSettledAfterNs = 2'000'000'000;

std::int64_t nanoseconds_of(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

std::int64_t file_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

TokenVerifier::TokenVerifier(IdentityProvider provider, Report report)
    : provider_(std::move(provider)), report_(std::move(report)) {}

Result<std::shared_ptr<TokenVerifier>> TokenVerifier::open(IdentityProvider provider, Report report) {
  std::shared_ptr<TokenVerifier> verifier(new TokenVerifier(std::move(provider), std::move(report)));
  FEDGE_TRY_VOID(verifier->look());
  return verifier;
}

std::optional<TokenVerifier::Version> TokenVerifier::version() const {
  struct stat info {};
  if (::stat(provider_.key_set.c_str(), &info) != 0) return std::nullopt;
  return Version{.device = info.st_dev,
                 .inode = info.st_ino,
                 .bytes = info.st_size,
                 .modified_ns = nanoseconds_of(info.st_mtim),
                 .changed_ns = nanoseconds_of(info.st_ctim)};
}

// Looks at the version before the bytes: a change in between is noticed by the next look.
Result<std::string> TokenVerifier::read() {
  version_ = version();
  const std::int64_t now = file_clock_ns();
  auto text = read_file(provider_.key_set, kMaxKeySetBytes);
  settled_ = text && version_ && now - version_->changed_ns > kSettledAfterNs;
  return text;
}

Result<void> TokenVerifier::look() {
  if (settled_ && version() == version_) return {};
  const auto text = read();
  std::string content = text ? to_hex(sha256(*text)) : text.error().message;
  if (content == seen_) return {};
  seen_ = std::move(content);
  if (!text) return text.error();
  auto keys = KeySet::parse(*text);
  if (!keys) return keys.error().with_prefix(provider_.key_set.string() + ": ");
  keys_ = std::move(*keys);
  known_.clear();
  order_.clear();
  if (report_)
    report_(Event{Severity::kInfo, "api.keys_loaded", {}}
                .with("file", provider_.key_set.string())
                .with("keys", static_cast<std::int64_t>(keys_.size())));
  return {};
}

void TokenVerifier::look_and_report() {
  const auto looked = look();
  if (!looked && report_)
    report_(Event{Severity::kWarning, "api.keys_refused", {}}.with("reason", looked.error().message));
}

void TokenVerifier::refresh() {
  const std::lock_guard lock(mutex_);
  look_and_report();
}

Result<std::string> TokenVerifier::verify(const std::string& token, UnixSeconds now) {
  const std::lock_guard lock(mutex_);
  look_and_report();
  const std::string hash = to_hex(sha256(token));
  if (const auto found = known_.find(hash); found != known_.end()) {
    FEDGE_TRY_VOID(check_expiry(found->second.expires, now));
    return found->second.user;
  }
  FEDGE_TRY(payload, signed_payload(token, keys_));
  FEDGE_TRY(bearer, check_claims(payload, provider_.expected, now));
  remember(hash, bearer);
  return bearer.user;
}

void TokenVerifier::remember(const std::string& hash, const TokenBearer& bearer) {
  if (order_.size() >= kMostRemembered) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  known_.emplace(hash, bearer);
  order_.push_back(hash);
}

}  // namespace fedge::server

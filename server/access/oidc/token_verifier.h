// TokenVerifier accepts the access tokens of an organisation's identity provider (OpenID Connect): JSON Web
// Tokens that a key of its key set has signed. It says only who the bearer is; AccessControl decides what
// that user may do. Reads the key set again when its file changes. A broken file leaves the former keys in
// force and is reported once. Any thread. Cost: a system call and a hash for a token that was checked before,
// a signature check for others; memory: the key set, and kMostRemembered hashes of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/event.h"
#include "core/result.h"
#include "server/access/oidc/claims.h"
#include "server/access/oidc/key_set.h"

namespace fedge::server {

struct IdentityProvider {
  ExpectedClaims expected;
  std::filesystem::path key_set;
};

class TokenVerifier {
 public:
  // Receives events on the thread of the call that caused them; it must not call back.
  using Report = std::function<void(const Event&)>;
  static constexpr std::size_t kMostRemembered = 1024;  // tokens

  // The error names the file of the key set and what is wrong with it.
  static Result<std::shared_ptr<TokenVerifier>> open(IdentityProvider provider, Report report = {});

  // Returns the name of the token's bearer. kRefused says exactly why the token is not valid at this time.
  Result<std::string> verify(const std::string& token, UnixSeconds now);
  // Reads the key set again if its file has changed. verify() does so, too.
  void refresh();

 private:
  // Distinguishes the versions of a file that differ in more than their bytes.
  struct Version {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t bytes = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Version&) const = default;
  };
  TokenVerifier(IdentityProvider provider, Report report);
  std::optional<Version> version() const;
  Result<std::string> read();
  // The error says what is wrong with the file, once for each of its contents.
  Result<void> look();
  void look_and_report();
  void remember(const std::string& hash, const TokenBearer& bearer);

  const IdentityProvider provider_;
  const Report report_;
  std::mutex mutex_;  // guards all below
  std::optional<Version> version_;
  bool settled_ = false;  // a later change of the file also changes version_
  std::string seen_;      // hash of the last content, or the error of the last read
  KeySet keys_;
  std::unordered_map<std::string, TokenBearer> known_;  // accepted tokens by their hash, only with keys_
  std::deque<std::string> order_;                       // of known_, the oldest first
};

}  // namespace fedge::server

#include "protocol/join_token.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "core/crypto/sha256.h"

namespace fedge::protocol {
namespace {

constexpr std::string_view kPrefix = "fedge1.";
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kChecksum = 4;
constexpr std::size_t kMaxTokenText = 2048;

std::string to_base64(std::string_view bytes) {
  std::string text;
  unsigned held = 0;
  unsigned bits = 0;
  for (const char byte : bytes) {
    held = held << 8 | static_cast<std::uint8_t>(byte);
    for (bits += 8; bits >= 6; bits -= 6) text += kAlphabet[held >> (bits - 6) & 63];
    held &= (1U << bits) - 1;
  }
  if (bits > 0) text += kAlphabet[held << (6 - bits) & 63];
  return text;
}

// Decodes base64url; nothing if a character is foreign or the encoding is not canonical.
std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  unsigned held = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    held = held << 6 | static_cast<unsigned>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(static_cast<std::uint8_t>(held >> bits));
    held &= (1U << bits) - 1;
  }
  if (bits >= 6 || held != 0) return std::nullopt;
  return bytes;
}

std::string checksum_of(std::string_view bytes) {
  const Digest digest = sha256(std::string(kPrefix).append(bytes));
  return {digest.begin(), digest.begin() + kChecksum};
}

bool is_secret(std::string_view secret) {
  return secret.size() >= kMinTokenSecret && secret.size() <= kMaxTokenSecret &&
         std::all_of(secret.begin(), secret.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// Takes fields from the front; after the first missing field all later ones are missing.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}
  std::string_view take(std::size_t size) {
    complete_ = complete_ && size <= rest_.size();
    if (!complete_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::size_t take_number(std::size_t size) {
    std::size_t value = 0;
    const std::string_view bytes = take(size);
    for (std::size_t i = bytes.size(); i > 0; --i)
      value = value << 8 | static_cast<std::uint8_t>(bytes[i - 1]);
    return value;
  }
  bool finished() const { return complete_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool complete_ = true;
};

Error damaged() {
  return {ErrorCode::kCorrupt,
          "the join token is incomplete or mistyped; copy the whole line that 'fedge token create' printed"};
}

}  // namespace

std::string encode_join_token(const JoinToken& token) {
  FEDGE_CHECK(token.addresses.size() <= kMaxCoordinatorAddresses, "at most 4 addresses");
  FEDGE_CHECK(is_secret(token.secret), "16 to 128 printable characters of secret");
  std::string bytes(1, static_cast<char>(token.addresses.size()));
  for (const Address& address : token.addresses) {
    FEDGE_CHECK(!address.host.empty() && address.host.size() <= 253, "a host's name");
    bytes += static_cast<char>(static_cast<std::uint8_t>(address.host.size()));
    bytes += address.host;
    bytes += static_cast<char>(static_cast<std::uint8_t>(address.port & 0xff));
    bytes += static_cast<char>(static_cast<std::uint8_t>(address.port >> 8));
  }
  bytes.append(token.coordinator.bytes.begin(), token.coordinator.bytes.end());
  bytes += static_cast<char>(token.secret.size());
  bytes += token.secret;
  bytes += checksum_of(bytes);
  return std::string(kPrefix) + to_base64(bytes);
}

Result<JoinToken> parse_join_token(const std::string& text) {
  if (!text.starts_with(kPrefix)) {
    const std::size_t dot = text.find('.');
    if (text.starts_with("fedge") && dot != std::string::npos && dot < 16)
      return Error{ErrorCode::kUnsupported,
                   "this program does not support the version of the join token; it supports tokens that "
                   "begin with 'fedge1.'"};
    return invalid("a join token begins with 'fedge1.'; 'fedge token create' on the coordinator prints one");
  }
  if (text.size() > kMaxTokenText) return damaged();
  const auto bytes = from_base64(std::string_view(text).substr(kPrefix.size()));
  if (!bytes || bytes->size() < kChecksum) return damaged();
  const std::string_view body = std::string_view(*bytes).substr(0, bytes->size() - kChecksum);
  if (checksum_of(body) != std::string_view(*bytes).substr(body.size())) return damaged();
  Fields fields(body);
  JoinToken token;
  const std::size_t count = fields.take_number(1);
  if (count > kMaxCoordinatorAddresses) return invalid("the join token contains too many addresses");
  for (std::size_t i = 0; i < count; ++i) {
    const std::string host(fields.take(fields.take_number(1)));
    const auto port = static_cast<std::uint16_t>(fields.take_number(2));
    auto address = parse_address(to_string(Address{host, port}));
    if (!address || port == 0) return invalid("the join token contains an invalid address");
    token.addresses.push_back(std::move(*address));
  }
  const std::string_view key = fields.take(token.coordinator.bytes.size());
  std::copy(key.begin(), key.end(), token.coordinator.bytes.begin());
  token.secret = fields.take(fields.take_number(1));
  if (!fields.finished() || !is_secret(token.secret))
    return invalid("the join token has an invalid secret or extra bytes at its end");
  return token;
}

}  // namespace fedge::protocol

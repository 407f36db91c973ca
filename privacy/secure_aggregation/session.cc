#include "privacy/secure_aggregation/session.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "core/crypto/hkdf.h"
#include "core/crypto/random.h"

namespace fedge::privacy {
namespace {

// Bytes to hash or sign. Each kind begins with its own label, so that none can pass for another. The
// destructor wipes them; texts with a secret must fit into kRoom, so that no copy remains after a
// reallocation.
class Text {
 public:
  static constexpr std::size_t kRoom = 512;

  explicit Text(std::string_view label) {
    bytes_.reserve(kRoom);
    add(label);
  }
  ~Text() { wipe({reinterpret_cast<std::uint8_t*>(bytes_.data()), bytes_.size()}); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  Text& add(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) bytes_.push_back(std::byte{byte});
    return *this;
  }
  Text& number(std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<const std::uint8_t> octets() const {
    return {reinterpret_cast<const std::uint8_t*>(bytes_.data()), bytes_.size()};
  }

 private:
  void add(std::string_view label) {
    number(label.size());
    for (const char c : label) bytes_.push_back(static_cast<std::byte>(c));
  }
  std::vector<std::byte> bytes_;
};

void write(Text& text, const Digest& context, ClientId client, const protocol::SecureAdvertisement& keys) {
  text.add(context).number(client.value()).add(keys.channel.bytes).add(keys.mask.bytes).add(keys.commitment);
  text.number(keys.fast_aes ? 1 : 0);
}
constexpr std::string_view kKeys = "fedge secure aggregation 1: keys";

void write(Text& text, const Digest& roster, std::uint32_t number, std::span<const std::uint32_t> survivors) {
  text.add(roster).number(number).number(survivors.size());
  for (const std::uint32_t survivor : survivors) text.number(survivor);
}
constexpr std::string_view kSurvivors = "fedge secure aggregation 1: survivors";

Result<Secret> agreed_key(std::string_view label, const Secret& mine, const std::pair<Party, Party>& parties,
                          const Digest& roster) {
  const auto& [me, other] = parties;
  FEDGE_TRY(shared, derive_shared_secret(mine, other.key));
  const bool first = std::pair(me.key, me.identity) < std::pair(other.key, other.identity);
  const Party& low = first ? me : other;
  const Party& high = first ? other : me;
  Text info(label);
  info.add(low.key.bytes).add(low.identity.bytes).add(high.key.bytes).add(high.identity.bytes);
  return derive_key(shared, roster, info.octets());
}

}  // namespace

std::uint32_t SecureRules::honest_survivors() const {
  return static_cast<std::uint32_t>(std::floor(min_survivors * (1 - assumptions.corrupt)));
}

std::uint32_t SecureRules::enough(std::uint32_t members) const {
  return std::max(min_survivors, honest_survivors() + at_most(assumptions.corrupt, members));
}

SecureRules stricter(const SecureRules& described, const SecureRules& own) {
  return {.assumptions = {.corrupt = std::max(described.assumptions.corrupt, own.assumptions.corrupt),
                          .dropout = std::max(described.assumptions.dropout, own.assumptions.dropout),
                          .adversary = std::max(described.assumptions.adversary, own.assumptions.adversary)},
          .complete_below = std::max(described.complete_below, own.complete_below),
          .min_survivors = std::max(described.min_survivors, own.min_survivors)};
}

GraphParameters choose_graph(const SecureRules& rules, std::uint32_t members) {
  if (members >= rules.complete_below)
    if (const auto sparse = sparse_graph(members, rules.assumptions)) return *sparse;
  return complete_graph(members);
}

Digest terms_of(TaskKind kind, const Digest& terms) {
  if (kind == TaskKind::kTraining) return terms;
  Text text(kind == TaskKind::kEvaluation ? "fedge secure aggregation 1: evaluation"
                                          : "fedge secure aggregation 1: statistics");
  return sha256(text.add(terms).bytes());
}

Digest context_of(const protocol::SecureSession& session, const Digest& model, const Digest& terms) {
  Text text("fedge secure aggregation 1: session");
  text.number(session.run.value()).number(session.round.value()).number(session.track.value());
  text.number(session.attempt).add(model).add(terms);
  return sha256(text.bytes());
}

Signature sign_keys(const SecretKey& identity, const Digest& context, ClientId client,
                    const protocol::SecureAdvertisement& keys) {
  Text text(kKeys);
  write(text, context, client, keys);
  return sign(identity, text.bytes());
}

bool verify_keys(const PublicKey& identity, const Digest& context, ClientId client,
                 const protocol::SecureAdvertisement& keys) {
  Text text(kKeys);
  write(text, context, client, keys);
  return verify(identity, text.bytes(), keys.signature);
}

Digest digest_of(const protocol::SecureRoster& roster, const Digest& context) {
  Text text("fedge secure aggregation 1: roster");
  text.add(context).add(roster.seed).number(roster.members).number(roster.degree).number(roster.threshold);
  text.number(roster.complete ? 1 : 0).number(static_cast<std::uint64_t>(roster.cipher));
  text.number(roster.cells.size());
  for (const Range& cell : roster.cells) text.number(cell.begin).number(cell.end);
  text.number(roster.coverages.size());
  for (const Coverage& coverage : roster.coverages) {
    const std::vector<std::uint8_t> bytes = coverage.encode();
    text.number(bytes.size()).add(bytes);
  }
  text.number(roster.coverage_of.size());
  for (const std::uint32_t kind : roster.coverage_of) text.number(kind);
  return sha256(text.bytes());
}

Signature sign_survivors(const SecretKey& identity, const Digest& roster, std::uint32_t number,
                         std::span<const std::uint32_t> survivors) {
  Text text(kSurvivors);
  write(text, roster, number, survivors);
  return sign(identity, text.bytes());
}

bool verify_survivors(const PublicKey& identity, const Digest& roster, const Consent& consent) {
  Text text(kSurvivors);
  write(text, roster, consent.number, consent.survivors);
  return verify(identity, text.bytes(), consent.signature);
}

Digest commitment_to(const Digest& context, const Secret& self_mask) {
  return sha256(Text("fedge secure aggregation 1: self mask").add(context).add(self_mask.bytes()).bytes());
}

Result<Secret> pair_mask_key(const Secret& mine, const Party& me, const Party& other, const Digest& roster) {
  return agreed_key("fedge secure aggregation 1: mask", mine, {me, other}, roster);
}

Result<Secret> channel_key(const Secret& mine, const Party& me, const Party& other, const Digest& roster) {
  return agreed_key("fedge secure aggregation 1: channel", mine, {me, other}, roster);
}

std::array<std::uint8_t, 16> check_of(const Digest& roster, const Secret& pair_key) {
  const Digest digest =
      sha256(Text("fedge secure aggregation 1: pair").add(roster).add(pair_key.bytes()).bytes());
  std::array<std::uint8_t, 16> check{};
  std::copy_n(digest.begin(), check.size(), check.begin());
  return check;
}

std::array<std::uint8_t, 40> about_box(const Digest& roster, std::uint32_t from, std::uint32_t to) {
  std::array<std::uint8_t, 40> about{};
  std::ranges::copy(roster, about.begin());
  for (unsigned i = 0; i < 4; ++i) {
    about.at(32 + i) = static_cast<std::uint8_t>(from >> (8 * i));
    about.at(36 + i) = static_cast<std::uint8_t>(to >> (8 * i));
  }
  return about;
}

}  // namespace fedge::privacy

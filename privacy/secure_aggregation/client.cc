#include "privacy/secure_aggregation/client.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/crypto/random.h"
#include "core/crypto/secret_box.h"
#include "privacy/secure_aggregation/cells.h"
#include "privacy/secure_aggregation/graph.h"

namespace fedge::privacy {
namespace {

constexpr std::size_t kSealedBytes = 2 * kShareBytes;
static_assert(kSealedBytes + kSecretBoxOverhead == protocol::kSealedShares);
static_assert(sizeof(protocol::SecureUnmask::ShareBytes) == kShareBytes);

protocol::SecureUnmask::ShareBytes bytes_of(const Share& share) {
  protocol::SecureUnmask::ShareBytes bytes{};
  share.encode(bytes);
  return bytes;
}

}  // namespace

SecureClient::SecureClient(MemberTerms terms, const SecretKey& identity, const Entropy& entropy)
    : terms_(std::move(terms)),
      identity_(identity),
      entropy_(entropy),
      context_(context_of(terms_.session, terms_.model, terms_.terms)) {}

void SecureClient::start(std::vector<Effect>& effects) {
  FEDGE_CHECK(stage_ == Stage::kNew, "a session starts once");
  stage_ = Stage::kAdvertised;
  channel_secret_ = draw_secret(entropy_);
  mask_secret_ = draw_secret(entropy_);
  self_mask_ = draw_secret(entropy_);
  keys_.channel = exchange_key_of(channel_secret_);
  keys_.mask = exchange_key_of(mask_secret_);
  keys_.commitment = commitment_to(context_, self_mask_);
  keys_.fast_aes = terms_.fast_aes;
  keys_.signature = sign_keys(identity_, context_, terms_.self, keys_);
  last_ = Send{protocol::SecureKeys{terms_.session, keys_}};
  effects.push_back(*last_);
}

void SecureClient::repeat(std::vector<Effect>& effects) const {
  if (last_ && stage_ != Stage::kStopped) effects.push_back(*last_);
}

void SecureClient::receive(const protocol::SecureRoster& roster, std::vector<Effect>& effects) {
  if (roster.session != terms_.session || over()) return;
  if (stage_ != Stage::kAdvertised) {
    const bool same = digest_of(roster, context_) == told_ && roster.number == roster_.number &&
                      std::ranges::equal(roster.peers, peers_, {}, {}, &Peer::told);
    if (!same)
      return stop(
          {ErrorCode::kRefused, "the coordinator sent a list of members that differs from its first list"},
          effects);
    if (stage_ == Stage::kShared) repeat(effects);
    return;
  }
  if (const auto sound = check_roster(roster); !sound) return stop(sound.error(), effects);
  auto shares = share_with(roster);
  if (!shares) return stop(shares.error(), effects);
  stage_ = Stage::kShared;
  last_ = Send{std::move(*shares)};
  effects.push_back(*last_);
}

Result<protocol::SecureShares> SecureClient::share_with(const protocol::SecureRoster& roster) {
  roster_ = roster;
  roster_.peers.clear();
  told_ = digest_of(roster, context_);
  for (const auto& told : roster.peers) {
    peers_.emplace_back();
    Peer& peer = peers_.back();
    peer.told = told;
    FEDGE_TRY(pair, pair_mask_key(mask_secret_, party(), {told.identity, told.keys.mask}, told_));
    peer.pair = std::move(pair);
    FEDGE_TRY(channel, channel_key(channel_secret_, {identity_.public_key(), keys_.channel},
                                   {told.identity, told.keys.channel}, told_));
    peer.channel = std::move(channel);
  }
  std::vector<std::uint32_t> points;
  for (const Peer& peer : peers_) points.push_back(peer.told.number + 1);
  if (roster.complete) points.push_back(roster.number + 1);
  const std::vector<Share> mask_key = split(mask_secret_, roster.threshold, points, entropy_);
  const std::vector<Share> self_mask = split(self_mask_, roster.threshold, points, entropy_);
  if (roster.complete) own_share_ = self_mask.back();
  protocol::SecureShares shares{terms_.session, {}};
  for (std::size_t p = 0; p < peers_.size(); ++p) {
    std::array<std::uint8_t, kSealedBytes> plain{};
    mask_key[p].encode(std::span(plain).first<kShareBytes>());
    self_mask[p].encode(std::span(plain).last<kShareBytes>());
    const std::uint32_t to = peers_[p].told.number;
    // Both peers seal one box with the same channel key: the sender's number is its unique nonce.
    const auto box = seal_box(peers_[p].channel, roster.number, about_box(told_, roster.number, to), plain);
    wipe(plain);
    auto& sealed = shares.shares.emplace_back();
    sealed.to = to;
    std::ranges::copy(box, sealed.box.begin());
    sealed.check = check_of(told_, peers_[p].pair);
  }
  return shares;
}

void SecureClient::receive(const protocol::SecurePeerShares& shares, std::vector<Effect>& effects) {
  if (shares.session != terms_.session || over()) return;
  if (stage_ == Stage::kReady || stage_ == Stage::kConsented) {
    std::vector<std::uint32_t> known;
    for (const Peer& peer : peers_)
      if (peer.takes_part) known.push_back(peer.told.number);
    const bool same =
        std::ranges::equal(shares.shares, known, {}, [](const auto& sealed) { return sealed.from; });
    if (!same)
      stop({ErrorCode::kRefused,
            "the coordinator sent a list of participants that differs from its first list"},
           effects);
    return;
  }
  if (stage_ != Stage::kShared)
    return stop({ErrorCode::kRefused, "the coordinator sent secret shares before the list of members"},
                effects);
  if (const auto taken = take_shares(shares); !taken) return stop(taken.error(), effects);
  stage_ = Stage::kReady;
  last_.reset();
  effects.push_back(Ready{});
}

Result<void> SecureClient::take_shares(const protocol::SecurePeerShares& shares) {
  for (const auto& sealed : shares.shares) {
    const auto found = std::ranges::find(peers_, sealed.from, [](const Peer& p) { return p.told.number; });
    if (found == peers_.end() || found->takes_part)
      return Error{ErrorCode::kRefused,
                   "the coordinator sent a secret share twice, or the secret share of a client that is not a "
                   "neighbour"};
    found->takes_part = true;
    const auto plain =
        open_box(found->channel, sealed.from, about_box(told_, sealed.from, roster_.number), sealed.box);
    // Tolerates an unreadable share: the other holders' shares may suffice. The mask is added in any case.
    if (!plain || plain->size() != kSealedBytes) continue;
    const auto mask_key = Share::decode(std::span(*plain).first<kShareBytes>());
    const auto self_mask = Share::decode(std::span(*plain).last<kShareBytes>());
    if (mask_key && self_mask) {
      found->mask_key = *mask_key;
      found->self_mask = *self_mask;
    }
  }
  const std::size_t own = roster_.complete ? 1 : 0;
  if (shares.shares.size() + own < roster_.threshold)
    return Error{ErrorCode::kUnavailable, "too few clients have sent secret shares to this client"};
  if (roster_.complete && shares.shares.size() + 1 < terms_.rules.enough(roster_.members))
    return Error{ErrorCode::kRefused, "fewer clients take part than this client requires"};
  return {};
}

Masking SecureClient::masking() const {
  FEDGE_CHECK(stage_ == Stage::kReady, "masks are known once it is said who takes part");
  Masking masking;
  masking.contributes_ = roster_.coverages[kind_of(roster_.number)];
  // In a sparse graph, too few neighbours might train the same part: there every member masks all cells.
  masking.coverage_ = roster_.complete ? masking.contributes_ : Coverage::of(roster_.cells);
  masking.cells_ = roster_.cells;
  masking.cipher_ = roster_.cipher;
  masking.keys_.push_back(self_mask_.copy());
  masking.terms_.push_back({0, std::nullopt, false});
  std::map<std::uint32_t, std::size_t> overlaps;
  for (const Peer& peer : peers_) {
    if (!peer.takes_part) continue;
    std::optional<std::size_t> where;
    const std::uint32_t kind = kind_of(peer.told.number);
    if (roster_.complete && kind != kind_of(roster_.number)) {
      const auto [known, is_new] = overlaps.try_emplace(kind, masking.where_.size());
      if (is_new) masking.where_.push_back(masking.coverage_.intersect(roster_.coverages[kind]));
      where = known->second;
    }
    masking.keys_.push_back(peer.pair.copy());
    masking.terms_.push_back({masking.keys_.size() - 1, where, peer.told.number < roster_.number});
  }
  return masking;
}

std::vector<MaskTerm> Masking::terms() const {
  std::vector<MaskTerm> terms;
  for (const Term& term : terms_)
    terms.push_back({&keys_[term.key], term.take_away, term.where ? &where_[*term.where] : nullptr});
  return terms;
}

void Masking::apply(std::span<std::uint32_t> words, std::span<std::uint64_t> scalars,
                    Parallel& parallel) const {
  apply_masks(words, coverage_, terms(), cipher_, parallel);
  apply_scalar_masks(scalars, terms(), cipher_);
}

void Masking::apply(std::span<std::uint64_t> words, std::span<std::uint64_t> scalars,
                    Parallel& parallel) const {
  apply_masks(words, coverage_, terms(), cipher_, parallel);
  apply_scalar_masks(scalars, terms(), cipher_);
}

void SecureClient::receive(const protocol::SecureSurvivors& survivors, std::vector<Effect>& effects) {
  if (survivors.session != terms_.session || over()) return;
  if (stage_ == Stage::kConsented) {
    if (survivors.numbers != survivors_)
      return stop(
          {ErrorCode::kRefused, "the coordinator sent a list of survivors that differs from its first list"},
          effects);
    return repeat(effects);
  }
  if (stage_ != Stage::kReady)
    return stop(
        {ErrorCode::kRefused, "the coordinator sent the list of survivors before the masks were agreed"},
        effects);
  if (const auto sound = check_survivors(survivors.numbers); !sound) return stop(sound.error(), effects);
  survivors_ = survivors.numbers;
  stage_ = Stage::kConsented;
  last_ = Send{
      protocol::SecureConsent{terms_.session, sign_survivors(identity_, told_, roster_.number, survivors_)}};
  effects.push_back(*last_);
}

void SecureClient::receive(const protocol::SecureConsents& consents, std::vector<Effect>& effects) {
  if (consents.session != terms_.session || stage_ == Stage::kStopped) return;
  // Any repeated request gets the answer that was given to the first one.
  if (stage_ == Stage::kAnswered) return repeat(effects);
  if (stage_ != Stage::kConsented)
    return stop(
        {ErrorCode::kRefused, "the coordinator requested secret shares before it sent the list of survivors"},
        effects);
  if (const auto sound = check_consents(consents); !sound) return stop(sound.error(), effects);
  stage_ = Stage::kAnswered;
  last_ = Send{answer()};
  forget_secrets();
  effects.push_back(*last_);
}

// Reveals one kind of share for each peer, never both: of a survivor the share of its self mask, of a dropout
// the share of its mask key, with the key of their common mask.
protocol::SecureUnmask SecureClient::answer() const {
  protocol::SecureUnmask answer{terms_.session, {}, {}};
  if (own_share_) answer.survivors.push_back({roster_.number, bytes_of(*own_share_)});
  for (const Peer& peer : peers_) {
    if (!peer.takes_part) continue;
    const std::uint32_t number = peer.told.number;
    if (survives(number)) {
      if (peer.self_mask) answer.survivors.push_back({number, bytes_of(*peer.self_mask)});
      continue;
    }
    protocol::SecureUnmask::Dropped dropped{.number = number};
    if (!peer.mask_key) continue;
    dropped.mask_key = bytes_of(*peer.mask_key);
    std::ranges::copy(peer.pair.bytes(), dropped.pair_key.begin());
    answer.dropped.push_back(dropped);
  }
  std::ranges::sort(answer.survivors, {}, [](const auto& survivor) { return survivor.number; });
  return answer;
}

bool SecureClient::survives(std::uint32_t number) const {
  return std::ranges::binary_search(survivors_, number);
}

const SecureClient::Peer* SecureClient::peer(std::uint32_t number) const {
  const auto found =
      std::ranges::lower_bound(peers_, number, {}, [](const Peer& p) { return p.told.number; });
  return found == peers_.end() || found->told.number != number ? nullptr : &*found;
}

void SecureClient::stop(Error error, std::vector<Effect>& effects) {
  stage_ = Stage::kStopped;
  last_.reset();
  forget_secrets();
  effects.push_back(Stopped{std::move(error)});
}

void SecureClient::forget_secrets() {
  channel_secret_ = Secret();
  mask_secret_ = Secret();
  self_mask_ = Secret();
  own_share_.reset();
  for (Peer& peer : peers_) {
    peer.channel = Secret();
    peer.pair = Secret();
    if (peer.mask_key) *peer.mask_key = Share{};
    if (peer.self_mask) *peer.self_mask = Share{};
  }
}

}  // namespace fedge::privacy

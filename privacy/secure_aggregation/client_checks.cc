// SecureClient: the checks of the coordinator's messages.
#include <algorithm>
#include <set>
#include <string>

#include "privacy/secure_aggregation/cells.h"
#include "privacy/secure_aggregation/client.h"
#include "privacy/secure_aggregation/graph.h"
#include "protocol/limits.h"

namespace fedge::privacy {
namespace {

Error refused(std::string what) { return {ErrorCode::kRefused, std::move(what)}; }

// Whether `numbers` are strictly ascending and below `bound`.
bool ascending_below(std::span<const std::uint32_t> numbers, std::uint32_t bound) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] >= bound || (i > 0 && numbers[i] <= numbers[i - 1])) return false;
  return true;
}

}  // namespace

Result<void> SecureClient::check_roster(const protocol::SecureRoster& roster) const {
  const std::uint32_t least = terms_.rules.enough(roster.members);
  if (roster.members < least)
    return refused("the coordinator sums the updates of only " + std::to_string(roster.members) +
                   " clients; this client requires at least " + std::to_string(least));
  if (roster.number >= roster.members)
    return invalid("the coordinator assigned this client a number outside the list of members");
  if (roster.cipher == StreamCipher::kAes256Ctr && !terms_.fast_aes)
    return refused("the coordinator requested AES masks, which this device did not offer");
  FEDGE_TRY_VOID(check_secure(
      roster.members, {.degree = roster.degree, .threshold = roster.threshold, .complete = roster.complete},
      terms_.rules.assumptions));
  if (!roster.complete && roster.members < terms_.rules.complete_below)
    return refused("the coordinator chose a sparse mask graph for " + std::to_string(roster.members) +
                   " clients; for so few clients, the graph must be complete");
  const MaskGraph graph = roster.complete ? MaskGraph::complete(roster.members)
                                          : MaskGraph::neighbours(roster.members, roster.degree, roster.seed);
  const bool as_drawn = std::ranges::equal(graph.neighbours(roster.number), roster.peers, {}, {},
                                           &protocol::SecureRoster::Peer::number);
  if (!as_drawn) return refused("the coordinator sent neighbours that differ from the mask graph");
  FEDGE_TRY_VOID(check_parties(roster));
  FEDGE_TRY_VOID(check_coverages(roster));
  return check_pinned_keys(roster);
}

Result<void> SecureClient::check_parties(const protocol::SecureRoster& roster) const {
  std::set<ClientId> clients = {terms_.self};
  std::set<PublicKey> identities = {identity_.public_key()};
  std::set<ExchangeKey> keys = {keys_.channel, keys_.mask};
  for (const auto& peer : roster.peers) {
    const std::string name = "client " + std::to_string(peer.client.value());
    if (!clients.insert(peer.client).second || !identities.insert(peer.identity).second)
      return refused(name + " is listed twice");
    if (!keys.insert(peer.keys.channel).second || !keys.insert(peer.keys.mask).second)
      return refused("the keys of " + name + " are also the keys of another client");
    if (!verify_keys(peer.identity, context_, peer.client, peer.keys))
      return refused("the keys of " + name +
                     " have an invalid signature, or are signed for another session or model");
  }
  return {};
}

// Called last, so that only a valid roster can make a peer's key known.
Result<void> SecureClient::check_pinned_keys(const protocol::SecureRoster& roster) const {
  if (!terms_.check_pinned_key) return {};
  for (const auto& peer : roster.peers) FEDGE_TRY_VOID(terms_.check_pinned_key(peer.client, peer.identity));
  return {};
}

Result<void> SecureClient::check_coverages(const protocol::SecureRoster& roster) const {
  FEDGE_TRY_VOID(check_cells(roster.cells, terms_.parameters));
  if (roster.cells.size() > protocol::kMaxSecureCells)
    return invalid("the coordinator sums too many separate ranges of the model");
  for (const Coverage& coverage : roster.coverages) FEDGE_TRY_VOID(check_made_of(coverage, roster.cells));
  const std::size_t kinds = roster.coverages.size();
  const bool indexed =
      roster.coverage_of.empty()
          ? kinds == 1
          : roster.coverage_of.size() == roster.members &&
                std::ranges::all_of(roster.coverage_of, [&](std::uint32_t kind) { return kind < kinds; });
  if (!indexed)
    return invalid("the coordinator did not say which client contributes to which part of the model");
  const Coverage& own = roster.coverages[roster.coverage_of.empty() ? 0 : roster.coverage_of[roster.number]];
  if (own != terms_.trained.intersect(Coverage::of(roster.cells)))
    return refused("the coordinator announced a wrong coverage for this client");
  return {};
}

Result<void> SecureClient::check_survivors(std::span<const std::uint32_t> survivors) const {
  if (!ascending_below(survivors, roster_.members))
    return invalid("the coordinator's list of survivors is malformed");
  if (!std::ranges::binary_search(survivors, roster_.number))
    return Error{ErrorCode::kStale, "the coordinator computed the sum without this client"};
  if (!masked_) return refused("the coordinator counts an update that this client has not sent");
  const std::uint32_t least = terms_.rules.enough(roster_.members);
  if (survivors.size() < least || (roster_.complete && survivors.size() < roster_.threshold))
    return refused("the sum would contain only " + std::to_string(survivors.size()) +
                   " updates; this client requires more");
  std::size_t near = roster_.complete ? 1 : 0;
  for (const std::uint32_t number : survivors) {
    const Peer* survivor = peer(number);
    if (survivor == nullptr) continue;
    if (!survivor->takes_part)
      return refused("the coordinator lists client " + std::to_string(survivor->told.client.value()) +
                     " as a survivor, but it does not take part");
    ++near;
  }
  if (near < roster_.threshold)
    return Error{ErrorCode::kUnavailable, "too few neighbours of this client remain"};
  for (const std::uint32_t count :
       contributors(roster_.cells, roster_.coverages, roster_.coverage_of, survivors))
    if (count < least)
      return refused("the sum of a part of the model would contain only " + std::to_string(count) +
                     " updates; this client requires at least " + std::to_string(least));
  return {};
}

Result<void> SecureClient::check_consents(const protocol::SecureConsents& consents) const {
  std::size_t agreed = roster_.complete ? 1 : 0;
  std::optional<std::uint32_t> last;
  for (const auto& consent : consents.consents) {
    const Peer* other = peer(consent.number);
    if (other == nullptr || !survives(consent.number) || (last && consent.number <= *last))
      return refused("the coordinator sent the consent of a client that is not a surviving neighbour");
    last = consent.number;
    if (!verify_survivors(other->told.identity, told_, {consent.number, survivors_, consent.signature}))
      return refused("client " + std::to_string(other->told.client.value()) +
                     " has not signed this list of survivors");
    ++agreed;
  }
  if (agreed < roster_.threshold)
    return refused("only " + std::to_string(agreed) + " clients have signed the list of survivors; " +
                   std::to_string(roster_.threshold) + " are needed");
  return {};
}

}  // namespace fedge::privacy

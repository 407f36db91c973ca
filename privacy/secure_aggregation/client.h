// SecureClient: a member of a session of secure aggregation, as a pure state machine (Bonawitz et al., CCS
// 2017, figure 4, with the steps against active adversaries; Bell et al., CCS 2020, for sparse graphs). It
// exchanges keys while its device trains, then masks the update. It helps to remove the masks of the sum once
// it has seen that its peers received the same list of survivors.
//
// The coordinator is not trusted. A message that weakens the session below its terms, or contradicts an
// earlier message, ends the session for this member, which then reveals nothing more. A repeated request is
// answered again. Secrets stay in memory and are wiped once the answer is given; after a restart, a process
// cannot answer. Cost: two key agreements and two signature verifications per neighbour.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "core/crypto/entropy.h"
#include "core/parallel.h"
#include "core/result.h"
#include "privacy/secure_aggregation/masking.h"
#include "privacy/secure_aggregation/session.h"
#include "privacy/secure_aggregation/shamir.h"

namespace fedge::privacy {

// Terms that a member insists on, whatever the coordinator sends.
struct MemberTerms {
  protocol::SecureSession session;
  ClientId self;
  Digest model{};  // hash of the model that it trains from
  Digest terms{};  // hash of the run's description that it knows
  std::size_t parameters = 0;
  Coverage trained;      // the coverage that it is asked to train
  SecureRules rules;     // the stricter of the run's rules and its own
  bool fast_aes = true;  // its processor has AES instructions
  // Checks a peer's node key against the key known for that client. The error says what contradicts it.
  // Called last, once the roster is otherwise valid and the peers' signatures are verified.
  std::function<Result<void>(ClientId, const PublicKey&)> check_pinned_key;
};

// Everything needed to mask one update, copied so that another thread can use it. The destructor wipes
// secrets.
class Masking {
 public:
  // coverage(): the parameters that are masked and sent. contributes(): those of them that the member has
  // trained; it sends zeros for the rest.
  const Coverage& coverage() const { return coverage_; }
  const Coverage& contributes() const { return contributes_; }
  // The cells of the sum. The scalars include a weight for each.
  const std::vector<Range>& cells() const { return cells_; }
  // `words`: packed over coverage(). `scalars`: at most kMaxScalars.
  void apply(std::span<std::uint32_t> words, std::span<std::uint64_t> scalars, Parallel& parallel) const;
  void apply(std::span<std::uint64_t> words, std::span<std::uint64_t> scalars, Parallel& parallel) const;

 private:
  friend class SecureClient;
  Coverage coverage_;
  Coverage contributes_;
  std::vector<Range> cells_;
  StreamCipher cipher_ = StreamCipher::kAes256Ctr;
  std::vector<Secret> keys_;
  std::vector<Coverage> where_;  // overlaps with the coverages of other members
  struct Term {
    std::size_t key;
    std::optional<std::size_t> where;  // index of where_; none: the whole coverage
    bool take_away;
  };
  std::vector<Term> terms_;
  std::vector<MaskTerm> terms() const;
};

class SecureClient {
 public:
  struct Send {
    std::variant<protocol::SecureKeys, protocol::SecureShares, protocol::SecureConsent,
                 protocol::SecureUnmask>
        message;
  };
  // masking() may be called.
  struct Ready {};
  // The member has left the session. kRefused: the coordinator asked for something that it must not get.
  struct Stopped {
    Error error;
  };
  using Effect = std::variant<Send, Ready, Stopped>;

  // `identity` must outlive the client.
  SecureClient(MemberTerms terms, const SecretKey& identity, const Entropy& entropy);
  // Must be called first, once.
  void start(std::vector<Effect>& effects);
  // Sends the last message again; called after a reconnection, since that message may be lost.
  void repeat(std::vector<Effect>& effects) const;

  void receive(const protocol::SecureRoster& roster, std::vector<Effect>& effects);
  void receive(const protocol::SecurePeerShares& shares, std::vector<Effect>& effects);
  void receive(const protocol::SecureSurvivors& survivors, std::vector<Effect>& effects);
  void receive(const protocol::SecureConsents& consents, std::vector<Effect>& effects);

  const protocol::SecureSession& session() const { return terms_.session; }
  // Whether masking() may be called: from Ready until masked().
  bool ready() const { return stage_ == Stage::kReady && !masked_; }
  Masking masking() const;
  // The masked update is sent: from now on the member may be listed as a survivor.
  void masked() { masked_ = true; }
  // The member has given its answer, which it only repeats, or has stopped.
  bool over() const { return stage_ == Stage::kAnswered || stage_ == Stage::kStopped; }

 private:
  enum class Stage { kNew, kAdvertised, kShared, kReady, kConsented, kAnswered, kStopped };
  struct Peer {
    protocol::SecureRoster::Peer told;
    Secret channel;
    Secret pair;
    bool takes_part = false;        // the peer has sealed shares for this member
    std::optional<Share> mask_key;  // the peer's shares; empty if they could not be read
    std::optional<Share> self_mask;
  };

  Result<void> check_roster(const protocol::SecureRoster& roster) const;
  Result<void> check_parties(const protocol::SecureRoster& roster) const;
  Result<void> check_pinned_keys(const protocol::SecureRoster& roster) const;
  Result<void> check_coverages(const protocol::SecureRoster& roster) const;
  Result<protocol::SecureShares> share_with(const protocol::SecureRoster& roster);
  Result<void> take_shares(const protocol::SecurePeerShares& shares);
  Result<void> check_survivors(std::span<const std::uint32_t> survivors) const;
  Result<void> check_consents(const protocol::SecureConsents& consents) const;
  protocol::SecureUnmask answer() const;
  bool survives(std::uint32_t number) const;
  std::uint32_t kind_of(std::uint32_t number) const {
    return roster_.coverage_of.empty() ? 0 : roster_.coverage_of[number];
  }
  const Peer* peer(std::uint32_t number) const;
  Party party() const { return {identity_.public_key(), keys_.mask}; }
  void stop(Error error, std::vector<Effect>& effects);
  void forget_secrets();

  MemberTerms terms_;
  const SecretKey& identity_;
  Entropy entropy_;
  Digest context_{};
  Digest told_{};  // digest_of() the roster
  Stage stage_ = Stage::kNew;
  bool masked_ = false;
  Secret channel_secret_;
  Secret mask_secret_;
  Secret self_mask_;
  protocol::SecureAdvertisement keys_;
  protocol::SecureRoster roster_;   // its peers are in peers_
  std::vector<Peer> peers_;         // ascending by number
  std::optional<Share> own_share_;  // share of its own self mask; complete graph only
  std::vector<std::uint32_t> survivors_;
  std::optional<Send> last_;  // for repeat()
};

}  // namespace fedge::privacy

// SecureClient: a member of a session of secure aggregation (Bonawitz et al., CCS 2017, figure 4, with the
// steps against active adversaries; Bell et al., CCS 2020, where the graph is sparse), as a pure state
// machine. It agrees on keys while its device trains, masks the update, and helps to take away the masks of
// the sum once it has seen that the others were told the same.
//
// The coordinator is not trusted: whatever weakens the session below its terms, or contradicts what was said
// before, ends it for this member, and nothing more is revealed. A question that is repeated word for word is
// answered again. Secrets stay in memory, and are wiped once the answer is given: a process that is started
// anew has nothing to answer with.
// Cost: two key agreements and two signatures verified for each neighbour.
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

// What a member keeps to, whatever the coordinator says.
struct MemberTerms {
  protocol::SecureSession session;
  ClientId self;
  Digest model{};  // that it trains from
  Digest terms{};  // hash of what it knows of the run
  std::size_t parameters = 0;
  Coverage trained;      // what it is asked to train
  SecureRules rules;     // the stricter of the run's and its own
  bool fast_aes = true;  // its processor has instructions for AES
  // Whether this is that client's node key, as far as it is known. The error names what speaks against it.
  // Asked of a roster that is sound otherwise, once those keys have signed.
  std::function<Result<void>(ClientId, const PublicKey&)> check_pinned_key;
};

// All that it takes to mask one update; a copy of its own, for another thread. Secrets are wiped with it.
class Masking {
 public:
  // What is masked and sent, and of it what the member contributes to: what it has trained that is summed.
  // The rest is zeros.
  const Coverage& coverage() const { return coverage_; }
  const Coverage& contributes() const { return contributes_; }
  // A weight for each is among the scalars.
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
  std::vector<Coverage> where_;  // what it masks with members of each kind
  struct Term {
    std::size_t key;
    std::optional<std::size_t> where;  // nothing: all of the coverage
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
  // masking() can be called.
  struct Ready {};
  // It takes no further part. kRefused: the coordinator asked for what it must not have.
  struct Stopped {
    Error error;
  };
  using Effect = std::variant<Send, Ready, Stopped>;

  // `identity` is lent and must outlive it.
  SecureClient(MemberTerms terms, const SecretKey& identity, const Entropy& entropy);
  // First of all.
  void start(std::vector<Effect>& effects);
  // The link is a new one: what was said last may be lost.
  void repeat(std::vector<Effect>& effects) const;

  void receive(const protocol::SecureRoster& roster, std::vector<Effect>& effects);
  void receive(const protocol::SecurePeerShares& shares, std::vector<Effect>& effects);
  void receive(const protocol::SecureSurvivors& survivors, std::vector<Effect>& effects);
  void receive(const protocol::SecureConsents& consents, std::vector<Effect>& effects);

  const protocol::SecureSession& session() const { return terms_.session; }
  // Whether masking() can be called: once Ready, until the update is masked.
  bool ready() const { return stage_ == Stage::kReady && !masked_; }
  Masking masking() const;
  // The masked update goes to the coordinator: from now on it may be among the survivors.
  void masked() { masked_ = true; }
  // Nothing more will be asked of it, or answered.
  bool over() const { return stage_ == Stage::kAnswered || stage_ == Stage::kStopped; }

 private:
  enum class Stage { kNew, kAdvertised, kShared, kReady, kConsented, kAnswered, kStopped };
  struct Peer {
    protocol::SecureRoster::Peer told;
    Secret channel;
    Secret pair;
    bool takes_part = false;        // has sealed shares for this member
    std::optional<Share> mask_key;  // its shares, where they could be read
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
  protocol::SecureRoster roster_;   // without its peers
  std::vector<Peer> peers_;         // ascending by number
  std::optional<Share> own_share_;  // of its self mask, in the complete graph
  std::vector<std::uint32_t> survivors_;
  std::optional<Send> last_;  // to be repeated
};

}  // namespace fedge::privacy

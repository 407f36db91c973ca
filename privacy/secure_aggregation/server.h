// SecureServer: the coordinator's part in a session of secure aggregation (client.h), as a pure state
// machine: who takes part, who is whose neighbour, whose masked updates are summed, and the shares that take
// away the masks. It sees masked updates and, in the end, the keys of masks that are in the sum of all
// survivors. What a member sends that does not fit excludes that member, never the others. Masks themselves
// are another's work (recovery.h), as are the sums. Memory: what members have sent, O(members * neighbours).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "privacy/secure_aggregation/cells.h"
#include "privacy/secure_aggregation/graph.h"
#include "privacy/secure_aggregation/recovery.h"
#include "privacy/secure_aggregation/session.h"
#include "protocol/secure_messages.h"

namespace fedge::privacy {

class SecureServer {
 public:
  struct Member {
    ClientId client;
    PublicKey identity;
    Coverage trained;  // what it is asked to train
  };
  struct Terms {
    protocol::SecureSession session;
    Digest model{};
    Digest terms{};
    SecureRules rules;
    // How long a step waits for who is here and says nothing.
    Duration patience = seconds(10);
  };

  struct Send {
    ClientId client;
    std::variant<protocol::SecureRoster, protocol::SecurePeerShares, protocol::SecureSurvivors,
                 protocol::SecureConsents>
        message;
  };
  // It takes no part: nothing of it will be in the sum.
  struct Excluded {
    ClientId client;
    std::string reason;
  };
  // Who is left masks updates from now on (coverage_of()).
  struct Agreed {};
  // The sum's masks can be taken away: take_unmasking().
  struct Unmaskable {};
  // Nothing can be made of the session any more.
  struct Failed {
    Error error;
  };
  using Effect = std::variant<Send, Excluded, Agreed, Unmaskable, Failed>;

  // Members ascending by client, at least one.
  SecureServer(Terms terms, std::vector<Member> members, Time now);

  void receive(ClientId client, const protocol::SecureKeys& keys, Time now, std::vector<Effect>& effects);
  void receive(ClientId client, const protocol::SecureShares& shares, Time now, std::vector<Effect>& effects);
  void receive(ClientId client, const protocol::SecureConsent& consent, Time now,
               std::vector<Effect>& effects);
  void receive(ClientId client, const protocol::SecureUnmask& unmask, Time now, std::vector<Effect>& effects);
  // Its link is gone; it may come back, and is not waited for meanwhile.
  void left(ClientId client, Time now, std::vector<Effect>& effects);
  // It is back, and is told again what it was told last.
  void returned(ClientId client, std::vector<Effect>& effects);
  // The masked updates of these, and no others, are in the sum: members that agreed.
  void summed(std::span<const ClientId> survivors, Time now, std::vector<Effect>& effects);
  void expired(Time now, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const { return deadline_; }

  // Once Agreed: what this member's masked update covers, or null if it takes no part.
  const Coverage* coverage_of(ClientId client) const;
  std::size_t members() const;  // who take part
  // Likewise, of all: what is summed, and how many parameters too few train.
  const std::vector<Range>& cells() const { return roster_.cells; }
  std::size_t left_out() const { return left_out_; }
  const GraphParameters& graph() const { return graph_; }
  // Once Unmaskable.
  Unmasking take_unmasking();
  const protocol::SecureSession& session() const { return terms_.session; }

 private:
  enum class Stage { kAdvertising, kSharing, kSumming, kConsenting, kUnmasking, kOver };
  struct Party {
    Member member;
    bool here = true;
    bool excluded = false;
    std::optional<protocol::SecureAdvertisement> keys;
    std::uint32_t number = 0;  // once there is a roster
    std::optional<protocol::SecureShares> shares;
    bool survives = false;
    std::optional<Signature> consent;
    std::optional<protocol::SecureUnmask> unmask;
  };

  bool mine(const protocol::SecureSession& session) const { return session == terms_.session; }
  Party* find(ClientId client);
  Party& at(std::uint32_t number) { return *by_number_[number]; }
  void exclude(Party& party, std::string reason, std::vector<Effect>& effects);
  void fail(Error error, std::vector<Effect>& effects);
  void wait_from(Time now) { deadline_ = now + terms_.patience; }
  // Whether everybody who is here has done this, of those who are asked to.
  template <class Asked, class Done>
  bool all(const Asked& asked, const Done& done) const;
  void go_on(Time now, bool late, std::vector<Effect>& effects);
  void end_advertising(Time now, std::vector<Effect>& effects);
  bool draw_roster(std::vector<Effect>& effects);
  void end_sharing(std::vector<Effect>& effects);
  void exclude_lonely(std::vector<Effect>& effects);
  void end_consenting(Time now, std::vector<Effect>& effects);
  void end_unmasking(std::vector<Effect>& effects);
  protocol::SecureRoster roster_for(const Party& party) const;
  protocol::SecurePeerShares shares_for(const Party& party) const;
  protocol::SecureSurvivors survivors() const { return {terms_.session, survivors_}; }
  protocol::SecureConsents consents_for(const Party& party) const;
  std::optional<std::string> objection(const Party& party, const protocol::SecureShares& shares) const;
  std::optional<std::string> objection(const Party& party, const protocol::SecureUnmask& unmask) const;
  bool takes_part(const Party& party) const { return party.shares.has_value() && !party.excluded; }

  Terms terms_;
  Digest context_{};
  Stage stage_ = Stage::kAdvertising;
  std::optional<Time> deadline_;
  std::map<ClientId, Party> parties_;
  std::vector<Party*> by_number_;
  GraphParameters graph_;
  std::uint32_t enough_ = 0;  // contributors to each parameter
  std::optional<MaskGraph> mask_graph_;
  protocol::SecureRoster roster_;  // what it tells all alike
  Digest told_{};                  // digest_of() that
  Coverage summed_;                // all of its cells
  std::size_t left_out_ = 0;
  std::vector<std::uint32_t> survivors_;
};

}  // namespace fedge::privacy

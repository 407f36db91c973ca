// SecureServer: the coordinator's part of a session of secure aggregation (client.h), as a pure state
// machine. It determines the members, their neighbours and the survivors, and collects the shares that unmask
// the sum. It sees masked updates and, at the end, the keys of the masks in the sum of all survivors. An
// invalid message excludes only its sender. recovery.h computes the masks; the caller computes the sums.
// Memory: the members' messages, O(members * neighbours).
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
    Coverage trained;  // the coverage that it is asked to train
  };
  struct Terms {
    protocol::SecureSession session;
    Digest model{};
    Digest terms{};
    SecureRules rules;
    // How long a step waits for connected members that have not answered.
    Duration patience = seconds(10);
  };

  struct Send {
    ClientId client;
    std::variant<protocol::SecureRoster, protocol::SecurePeerShares, protocol::SecureSurvivors,
                 protocol::SecureConsents>
        message;
  };
  // The client takes no further part. Only an update that has already arrived can be in the sum.
  struct Excluded {
    ClientId client;
    std::string reason;
  };
  // The remaining members mask their updates from now on (coverage_of()).
  struct Agreed {};
  // The masks of the sum can be removed: call take_unmasking().
  struct Unmaskable {};
  // The session has failed.
  struct Failed {
    Error error;
  };
  using Effect = std::variant<Send, Excluded, Agreed, Unmaskable, Failed>;

  // `members` is ascending by client and not empty.
  SecureServer(Terms terms, std::vector<Member> members, Time now);

  void receive(ClientId client, const protocol::SecureKeys& keys, Time now, std::vector<Effect>& effects);
  void receive(ClientId client, const protocol::SecureShares& shares, Time now, std::vector<Effect>& effects);
  void receive(ClientId client, const protocol::SecureConsent& consent, Time now,
               std::vector<Effect>& effects);
  void receive(ClientId client, const protocol::SecureUnmask& unmask, Time now, std::vector<Effect>& effects);
  // The client has disconnected. It may reconnect; until then no step waits for it.
  void left(ClientId client, Time now, std::vector<Effect>& effects);
  // The client has reconnected: sends the message of the current step again.
  void returned(ClientId client, std::vector<Effect>& effects);
  // The sum contains exactly the masked updates of `survivors`, who must be members of the session.
  void summed(std::span<const ClientId> survivors, Time now, std::vector<Effect>& effects);
  void expired(Time now, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const { return deadline_; }

  // The parameters in this client's masked update; null if it does not take part. Valid from Agreed on.
  const Coverage* coverage_of(ClientId client) const;
  std::size_t members() const;  // number of members that take part; valid from Agreed on
  // The cells that are summed, and the number of parameters that too few members train. Valid from Agreed on.
  const std::vector<Range>& cells() const { return roster_.cells; }
  std::size_t left_out() const { return left_out_; }
  const GraphParameters& graph() const { return graph_; }
  // What the session does, for operators: "keys", "shares", "updates", "consents", "unmasking" or "over". In
  // all stages but "updates" it awaits a message of each of these connected members, ascending.
  struct Progress {
    const char* stage;
    std::vector<ClientId> awaited;
  };
  Progress progress() const;
  // Valid from Unmaskable on, once.
  Unmasking take_unmasking();
  const protocol::SecureSession& session() const { return terms_.session; }

 private:
  enum class Stage { kAdvertising, kSharing, kSumming, kConsenting, kUnmasking, kOver };
  struct Party {
    Member member;
    bool here = true;
    bool excluded = false;
    std::optional<protocol::SecureAdvertisement> keys;
    std::uint32_t number = 0;  // valid once the roster is drawn
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
  // Whether every connected party that `asked` selects is `done`.
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
  std::uint32_t enough_ = 0;  // minimum number of contributors to each parameter
  std::optional<MaskGraph> mask_graph_;
  protocol::SecureRoster roster_;  // the part that is the same for all members
  Digest told_{};                  // digest_of() the roster
  Coverage summed_;                // union of all cells
  std::size_t left_out_ = 0;
  std::vector<std::uint32_t> survivors_;
};

}  // namespace fedge::privacy

// A test session of secure aggregation: the state machines of the coordinator and all members. Messages
// arrive at once; members drop out and messages change as a test wants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "privacy/secure_aggregation/client.h"
#include "privacy/secure_aggregation/server.h"

namespace fedge::privacy {

// The last step that a member performs.
enum class Last { kNothing, kKeys, kShares, kMasked, kConsent, kAll };
inline constexpr std::size_t kLasts = 6;

class TestSession {
 public:
  using Word = std::uint32_t;
  struct Plan {
    SecureRules rules;
    std::vector<Last> last;          // by member; missing entries: kAll
    std::vector<Coverage> trained;   // by member; missing entries: all parameters
    std::vector<ClientId> slow_aes;  // clients without AES instructions
    std::size_t parameters = 50;
    bool links_break = true;  // the coordinator notices a dropout at once; else at the deadline
    std::uint32_t attempt = 1;
  };
  struct Outcome {
    std::optional<Error> failure;  // the session's error
    std::vector<std::uint64_t> sums;
    std::vector<std::uint64_t> scalars;
    std::vector<ClientId> survivors;
    std::vector<ClientId> bad_shares;
    std::map<ClientId, std::string> excluded;
    std::map<ClientId, Error> stopped;
  };

  TestSession(std::uint32_t members, Plan plan);

  // Client numbers with gaps that do not start at 0.
  static ClientId id(std::uint32_t member) { return ClientId(10 + 3 * member); }
  static std::uint32_t member(ClientId client) { return (client.value() - 10) / 3; }

  // A member's update before masking; zeros where it trains nothing.
  std::vector<Word> update(std::uint32_t member) const;
  static std::uint64_t weight(std::uint32_t member) { return 100 + member; }

  Outcome run();

  // Observes, changes, or drops (by returning nothing) messages in transit.
  using ToClient = decltype(SecureServer::Send::message);
  using ToServer = decltype(SecureClient::Send::message);
  std::function<std::optional<ToClient>(ClientId, ToClient)> to_client = [](ClientId, ToClient message) {
    return message;
  };
  std::function<std::optional<ToServer>(ClientId, ToServer)> to_server = [](ClientId, ToServer message) {
    return message;
  };
  // Checks whether a member knows this key as that client's.
  std::function<Result<void>(ClientId, const PublicKey&)> check_pinned_key;
  // The masked updates that the coordinator received and counted.
  std::map<ClientId, std::vector<Word>> seen;

  // Restarts the member's process after it has sent its keys (0), shares (1) or consent (2).
  void make_anew_after(std::uint32_t member, std::size_t message) { anew_.emplace(member, message); }

  SecureServer& server() { return *server_; }
  SecureClient& client(std::uint32_t member) { return *clients_[member]; }
  const SecretKey& identity(std::uint32_t member) const { return identities_[member]; }
  // Delivers a message that the coordinator did not send.
  void tell(std::uint32_t member, const ToClient& message);

 private:
  std::unique_ptr<SecureClient> make_client(std::uint32_t i, const protocol::SecureSession& session);
  template <class Step>
  void step(const Step& take);  // called only in secure_session.cc
  void drop(std::uint32_t member);
  // A member that drops out stays silent from then on.
  bool silent_after(std::uint32_t member, Last step);
  void perform(std::uint32_t member, const std::vector<SecureClient::Effect>& effects);
  void begin_anew(std::uint32_t member);
  void perform(const SecureServer::Effect& effect);
  void settle();
  // All remaining members mask and send their updates.
  void sum();
  void unmask();

  Plan plan_;
  std::uint32_t members_;
  std::optional<std::pair<std::uint32_t, std::size_t>> anew_;
  std::vector<SecretKey> identities_;
  Rng entropy_{99};
  std::optional<SecureServer> server_;
  std::vector<std::unique_ptr<SecureClient>> clients_;
  std::deque<std::function<void()>> pending_;
  std::vector<std::uint32_t> ready_;
  std::vector<Word> sums_;
  std::vector<std::uint64_t> scalars_;
  Time now_{};
  bool agreed_ = false;
  bool summed_ = false;
  bool done_ = false;
  Outcome outcome_;
};

// Compares the sums with the plain sum of the survivors' updates, and with their weights in each cell.
void check_sum(TestSession& session, const TestSession::Outcome& outcome,
               const std::vector<Coverage>& trained = {});

}  // namespace fedge::privacy

// Sessions: this client's part in the secure sums of its runs. It begins a session (SecureClient) with each
// task that needs one, has the update masked when the masks are known and training is done, and reveals masks
// only after the disk has recorded it. It refuses a sum that could reveal an update together with an earlier
// one. Pure: the device is behind ports. One thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/conductor/ports.h"

namespace fedge::client {

// The facts of a run on which its secure sums depend.
struct MaskedRun {
  std::string name;
  std::uint64_t seed = 0;
  Digest terms{};  // hash of the run's description
  std::size_t parameters = 0;
  privacy::SecureRules rules;   // the stricter of the run's rules and this client's own
  bool noises_updates = false;  // this client adds noise to each update (local differential privacy)
  double noise_in_sums = 0;     // noise multiplier of each sum, by its honest clients alone
};

class Sessions {
 public:
  struct Context {
    const ClientEngine& engine;
    const Ports& ports;
    // Inputs for the engine, to be given after the current one.
    std::vector<ClientEngine::Input>& later;
  };
  Sessions(ClientId self, const Ports& ports);

  void prepared(RunId run, std::shared_ptr<const MaskedRun> terms);
  void forget(RunId run);
  // Call it after each step of the engine: begins the sessions of new tasks and ends those of finished ones.
  void follow(const Context& context);
  // Returns whether the message belongs to a session, of this client or of another one.
  bool receive(const protocol::Message& message, const Context& context);
  // The coordinator has assigned the task again. Repeats the last message, which may be lost.
  void repeat(const protocol::TrainRequest& request, const Context& context);
  // The update is trained; `update` is SummedUpdates::update_of() its values.
  void trained(RunId run, TaskId task, const Digest& update, const Context& context);
  // The masked update is ready to be offered.
  void masked(RunId run, TaskId task, const Context& context);
  // This number of known clients is on the disk, or could not be written.
  void known_clients_written(std::size_t number, const Result<void>& written, const Context& context);
  void sum_written(const protocol::SecureSession& session, const Result<void>& written,
                   const Context& context);
  // The device lost power, and with it the sessions' secrets. A masked update stays on the disk, but the
  // client cannot help to remove its masks.
  void lose_secrets();

 private:
  struct Member {
    privacy::SecureClient session;
    // How many known clients must be on the disk before anything is sent; nothing: none is named yet.
    std::optional<std::size_t> rests_on = {};
    std::vector<privacy::SecureClient::Effect> held = {};  // effects that wait for that write
    SummedUpdates::Sum sum = {};                           // once admitted; its `update` once trained
    TaskId task = {};                                      // of the session
    bool trained = false;                                  // and not masked yet
    std::optional<protocol::SecureUnmask> answer = {};     // waits until its record is on the disk
    bool written = false;                                  // the record is on the disk
  };
  struct Run {
    std::shared_ptr<const MaskedRun> terms;
    std::unique_ptr<Member> member = nullptr;  // of the current task
  };
  template <class M>
  bool hear(const M& message, const Context& context);
  Run* find(RunId run);
  void begin(RunId id, Run& run, const protocol::TrainRequest& task, const Context& context);
  Result<void> admit(const MaskedRun& terms, const SummedUpdates::Sum& sum, const Context& context) const;
  // Holds effects back until the known clients are on the disk: a crash must not make this client forget
  // their keys.
  void carry_out(RunId id, Run& run, const std::vector<privacy::SecureClient::Effect>& effects,
                 const Context& context);
  // Sends shares only after the disk has recorded that they are sent.
  void reveal(RunId id, Run& run, const protocol::SecureUnmask& answer, const Context& context);
  // Masks the update once it is trained and the masks are known.
  void mask(RunId id, Run& run, const Context& context);
  void write_known_clients(const Context& context);
  // Ends this client's part: the coordinator's request violates the terms, or too few clients are left.
  void stop(RunId id, const Run& run, const Error& error, const Context& context) const;
  static void say(const Run& run, const protocol::Message& message, const Context& context);

  ClientId self_;
  std::map<RunId, Run> runs_;
  std::size_t known_asked_ = 0;    // number of known clients whose write has been requested
  std::size_t known_written_ = 0;  // number of known clients on the disk
};

}  // namespace fedge::client

// EnergyMeter: what virtual devices do that consumes energy, and for how long. An activity is metered until
// it ends or is cut, so interrupted tasks count. Each client has at most one activity of a kind at a time.
// While any is open, the device is awake. Messages outside of bulk transfers count only their radio. One
// thread. Memory: open activities, and the ledger.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "sim/energy/ledger.h"
#include "sim/energy/spec.h"

namespace fedge::sim {

enum class Activity { kTraining, kTrainingAhead, kSending, kReceiving };

class EnergyMeter {
 public:
  // Learns what devices consume.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Until now, whenever it is charged.
    virtual void consumed(ClientId client, double joules) = 0;
    // From now on, until the next call.
    virtual void draws(ClientId client, double watts) = 0;
  };

  EnergyMeter(const EnergySpec& spec, std::size_t clients)
      : spec_(spec), ledger_(clients), trained_(clients), training_(clients), begun_(clients) {}

  // Call it before anything begins; `listener` must outlive the object.
  void tell(Listener& listener) { listener_ = &listener; }

  // Begins at `from`, which may lie ahead, and draws this power until end(), at most to `until`. An open
  // activity of the same kind ends first.
  void begin(ClientId client, Activity activity, double watts, Time from, Time until);
  // Ends it at this time. Nothing if there is none.
  void end(ClientId client, Activity activity, Time at);
  // Radio alone, for this time.
  void message(ClientId client, EnergyUse use, Duration time);
  // Moves what open activities have consumed until now into the ledger.
  void settle(Time now);
  void settle(ClientId client, Time now);

  // A training task of the client has begun, or its update has arrived.
  void task_begins(ClientId client, Time now);
  void task_ends(ClientId client, Time now);

  // The client starts to train, and ends; and what its own meter has shown in between, in joules.
  void training_begins(ClientId client, Time now);
  void training_ends(ClientId client, Time now);
  double training_energy(ClientId client) const { return joules_of(training_[client.value()]); }

  const EnergyLedger& ledger() const { return ledger_; }
  struct Round {
    EnergyLedger::ByUse by_use{};
    double largest_task = 0;  // joules; of the tasks whose updates have arrived; 0: none has
    double task_sum = 0;
    std::uint64_t tasks = 0;
  };
  // Returns what has come since the last call. Call settle() before. What comes then belongs to the next
  // round, if one begins: the messages after the last round are in no round and not in the ledger.
  Round take_round();

  double watts_of(Activity activity) const {
    return activity == Activity::kSending ? spec_.send_watts : spec_.receive_watts;
  }

 private:
  struct Open {
    double watts;
    Time from;
    Time until;
  };
  struct Device {
    std::array<std::optional<Open>, 4> activities;
    Time awake{};  // since, while any activity is open
  };
  void add(ClientId client, EnergyUse use, double watts, Duration time);
  void begin_round();
  void charge(ClientId client, Device& device, Time now);
  void tell_draw(ClientId client) const;
  // The client's entry of the ledger, after charging what is open.
  std::int64_t reading(ClientId client, Time now);

  EnergySpec spec_;
  EnergyLedger ledger_;
  Listener* listener_ = nullptr;  // null: nobody listens
  std::map<ClientId, Device> open_;
  bool between_rounds_ = false;
  std::map<ClientId, std::map<EnergyUse, std::int64_t>> waiting_;  // microjoules, while between rounds
  std::vector<std::int64_t> trained_;   // by client: the ledger when it began to train
  std::vector<std::int64_t> training_;  // by client: what its last training consumed
  std::vector<std::int64_t> begun_;     // by client: the ledger when its task began
  Round round_;
};

}  // namespace fedge::sim

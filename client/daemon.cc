#include "client/daemon.h"

#include <thread>
#include <utility>
#include <vector>

#include "client/device/coordinator_link.h"
#include "client/device/kept_records.h"
#include "client/device/round_exchange.h"
#include "client/device/task_worker.h"
#include "client/diagnosis/status_file.h"
#include "core/crypto/random.h"
#include "core/crypto/sealed_box.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "protocol/session/loop.h"

namespace fedge::client {
namespace {

constexpr std::size_t kMaxShownReason = 500;  // of each run in the status file, whose size is bounded

}  // namespace

// The owner of the conductor, and of the ports through which it works.
class Daemon::Impl final : public std::enable_shared_from_this<Daemon::Impl>, public Owner {
 public:
  Impl(boost::asio::io_context& io, DaemonOptions options, DirectoryLock lock, Membership membership,
       SecretKey key, std::unique_ptr<TaskFiles> files)
      : lock_(std::move(lock)),
        context_{io, std::move(options), std::move(membership), std::move(key), std::move(files)},
        conductor_(context_.membership.client, context_.options.backoff, /*traced=*/true),
        link_(context_),
        records_(context_),
        exchange_(context_),
        work_(context_, link_, exchange_),
        rng_(random_u64()),  // back-off jitter must differ between clients of one image
        timer_(context_.io),
        status_timer_(context_.io),
        status_(context_.options.state_directory),
        unfinished_(context_.io) {}

  // Before start(): reads state files, opens TLS and the directory.
  Result<void> prepare();
  // Resumes the updates of an earlier process, and connects.
  void start();
  void step(TaskConductor::Input input);
  void shut_down();

  // The conductor's port Owner.
  void report(const Event& event) override;
  void run_ended(const std::optional<Error>& rejection) override;
  void revoked(const std::string& reason) override;
  void finished() override;
  void settled() override;

  std::optional<Error> failure_;
  std::function<void()> finished_;

 private:
  // Why an update of an earlier process must not leave; null if it may.
  const char* forbids_saved(const protocol::UpdateOffer& offer) const;
  void start_sensors();
  void arm_timer();
  Activity activity();
  void show_status_soon();

  DirectoryLock lock_;  // two daemons with one key would disconnect each other
  DaemonContext context_;
  TaskConductor conductor_;
  CoordinatorLink link_;
  KeptRecords records_;
  RoundExchange exchange_;
  TaskWorker work_;
  Rng rng_;
  protocol::Timer timer_;
  protocol::Timer status_timer_;
  StatusFile status_;
  bool status_due_ = false;
  // Keeps the io_context running while only the worker has work.
  protocol::Unfinished unfinished_;
};

Result<void> Daemon::Impl::prepare() {
  context_.owner = weak_from_this();
  context_.engine = &conductor_.engine();
  context_.step = [this](TaskConductor::Input input) { step(std::move(input)); };
  context_.report = [this](const Event& event) { report(event); };
  FEDGE_TRY_VOID(records_.read());
  FEDGE_TRY(identity, protocol::make_tls_identity(context_.key));
  context_.identity = std::move(identity);
  FEDGE_TRY(swarm, Swarm::create(context_.io,
                                 {.client = context_.membership.client,
                                  .identity = context_.identity,
                                  .software = context_.options.software,
                                  .on_event = [this](const Event& event) { report(event); },
                                  .unseal = [this](auto sealed) { return unseal(context_.key, sealed); }},
                                 context_.options.swarm));
  context_.swarm = std::move(swarm);
  link_.begin([this](const protocol::Message& message) {
    return work_.received(message) || context_.swarm->received(message);
  });
  for (const SensorOptions& stream : context_.options.streams) {
    FEDGE_TRY(sensor, Sensor::open(stream));
    context_.options.data_directories[stream.name] = stream.directory;
    context_.sensors.push_back(std::move(sensor));
  }
  if (!context_.options.directory) return {};
  FEDGE_TRY(node, dht::DirectoryNode::open(context_.io, *context_.options.directory));
  context_.directory = std::move(node);
  return {};
}

// An earlier process without these options may have left an update without masks or noise. Forgetting one
// that has noise is harmless: the noise is derived from a key and from the update, so training it again gives
// the same update, or after the data has grown another one, which is counted.
const char* Daemon::Impl::forbids_saved(const protocol::UpdateOffer& offer) const {
  if (protocol::is_masked(offer.update.codec)) return nullptr;
  return context_.options.secure.required
             ? "the saved update is not masked, but this client was started with --only-secure"
         : context_.options.max_epsilon
             ? "the saved update may have no noise, but this client was started with --max-epsilon"
         : context_.options.require_noise
             ? "the saved update may have no noise, but this client was started with --require-noise"
             : nullptr;
}

void Daemon::Impl::start() {
  status_.write();
  for (auto& kept : context_.files->take_up([this](const Event& event) { report(event); })) {
    if (const char* insists = forbids_saved(kept.pending.offer)) {
      context_.files->forget(kept.pending.request.run);
      report(Event{Severity::kWarning, "update.dropped", {}}.with("reason", insists));
      continue;
    }
    context_.runs[kept.pending.request.run].update = std::move(kept.payload);
    step(ClientEngine::Resumed{std::move(kept.pending.request), std::move(kept.pending.offer)});
  }
  start_sensors();
  step(ClientEngine::Start{});
}

void Daemon::Impl::start_sensors() {
  // The handlers run on the sensors' threads.
  for (const auto& sensor : context_.sensors)
    sensor->start({.on_kept =
                       [&io = context_.io, weak = weak_from_this()] {
                         protocol::post(io, [weak] {
                           if (const auto self = weak.lock()) self->work_.grown();
                         });
                       },
                   .on_event =
                       [&io = context_.io, weak = weak_from_this()](const Event& event) {
                         protocol::post(io, [weak, event] {
                           if (const auto self = weak.lock()) self->report(event);
                         });
                       }});
}

void Daemon::Impl::step(TaskConductor::Input input) {
  const Ports ports{
      .coordinator = link_, .work = work_, .keep = records_, .owner = *this, .peers = &exchange_};
  conductor_.step(std::move(input), {context_.now(), rng_, ports});
}

void Daemon::Impl::report(const Event& event) {
  status_.note(event);
  show_status_soon();
  if (context_.options.on_event) context_.options.on_event(event);
}

void Daemon::Impl::settled() {
  arm_timer();
  status_.set(activity());
  if (!conductor_.engine().stopped()) return show_status_soon();
  status_.write();
}

Activity Daemon::Impl::activity() {
  const ClientEngine& engine = conductor_.engine();
  Activity activity{.link = engine.link_name(), .runs = {}};
  for (const auto& part : engine.parts()) {
    const DeviceRun& run = context_.runs[part.run];
    activity.runs.push_back({run.name, run.waiting && !part.task ? kAwaitsStream : part.work, part.task,
                             clean_text(part.reason, kMaxShownReason)});
  }
  return activity;
}

// Writes the status at most once a second: only people read it.
void Daemon::Impl::show_status_soon() {
  if (status_due_ || conductor_.engine().stopped()) return;
  status_due_ = true;
  status_timer_.after(std::chrono::seconds(1), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->status_due_ = false;
    self->status_.set(self->activity());
    self->status_.write();
  });
}

void Daemon::Impl::arm_timer() {
  const auto deadline = conductor_.next_deadline();
  if (!deadline) return timer_.cancel();
  timer_.at(context_.started + deadline->time_since_epoch(),
            [self = shared_from_this()] { self->step(Expired{}); });
}

void Daemon::Impl::run_ended(const std::optional<Error>& rejection) {
  if (!context_.options.stop_after_run || conductor_.engine().takes_part()) return;
  if (rejection) failure_ = rejection->with_prefix("this client took part in no run: ");
  step(ClientEngine::Stop{});
}

// Stops a daemon that was started for one run only. Any other daemon waits for its owner: if it exited, its
// supervisor would restart it, and it would ask again.
void Daemon::Impl::revoked(const std::string& reason) {
  const std::string remedy = "stop this daemon, then join with a new token and an empty state directory";
  report(Event{Severity::kError, "client.revoked", {}}.with("reason", reason).with("remedy", remedy));
  if (!context_.options.stop_after_run) return;
  failure_ = Error{ErrorCode::kRefused, "the coordinator has revoked this client (" + reason +
                                            "): join with a new token and an empty state directory"};
  step(ClientEngine::Stop{});
}

void Daemon::Impl::finished() {
  context_.sensors.clear();
  work_.stop();
  timer_.cancel();
  status_timer_.cancel();
  link_.close();
  context_.swarm->shut_down();
  // Post it: the directory must not be destroyed within one of its callbacks.
  protocol::post(context_.io, [self = shared_from_this()] { self->context_.directory.reset(); });
  context_.worker.stop();
  context_.trainer.stop();
  context_.writer.stop();
  if (finished_) protocol::post(context_.io, finished_);
  unfinished_.reset();
}

void Daemon::Impl::shut_down() {
  context_.sensors.clear();
  timer_.cancel();
  status_timer_.cancel();
  link_.stop_searching();
  context_.directory.reset();
  context_.swarm->shut_down();
  work_.stop();
  context_.worker.stop();
  context_.trainer.stop();
  context_.writer.stop();
  work_.leave_trainers();
  exchange_.shut_down();
  context_.trainer.join();
  context_.worker.join();
  context_.writer.join();
  work_.end_trainers();
  // Forget here what the worker had no time to forget.
  std::vector<RunId> held;
  const ClientEngine& engine = conductor_.engine();
  for (const auto& part : engine.parts())
    if (engine.holds_update(part.run)) held.push_back(part.run);
  context_.files->forget_others(held);
  link_.let_go();
}

Daemon::Daemon(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() { impl_->shut_down(); }

Result<std::unique_ptr<Daemon>> Daemon::create(boost::asio::io_context& io, DaemonOptions options) {
  if (!options.shared_bases.empty())
    if (const auto ready = prepare_shared_bases(options.shared_bases); !ready)
      return ready.error().with_prefix("--share-base: ");
  FEDGE_TRY(joined, read_membership(options.state_directory));  // says how to join, and makes no directory
  FEDGE_TRY(lock, DirectoryLock::acquire(options.state_directory));
  // Read again: another daemon, or fedge-client move, may have written it until then.
  FEDGE_TRY(membership, read_membership(options.state_directory));
  FEDGE_TRY(key, open_node_key(options.state_directory));
  FEDGE_TRY(files, TaskFiles::open(options.state_directory, options.cache_bytes));
  auto impl = std::make_shared<Impl>(io, std::move(options), std::move(lock), std::move(membership),
                                     std::move(key), std::move(files));
  FEDGE_TRY_VOID(impl->prepare());
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

void Daemon::on_finished(std::function<void()> finished) { impl_->finished_ = std::move(finished); }
void Daemon::start() { impl_->start(); }
void Daemon::stop() { impl_->step(ClientEngine::Stop{}); }
const std::optional<Error>& Daemon::failure() const { return impl_->failure_; }

}  // namespace fedge::client

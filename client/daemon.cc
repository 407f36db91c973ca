#include "client/daemon.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "client/client_memory.h"
#include "client/detail/daemon_impl.h"
#include "core/crypto/sealed_box.h"
#include "core/text.h"
#include "protocol/session/loop.h"

namespace fedge::client {
namespace {

// How long to search the directory before trying the last known addresses.
constexpr Duration kSearchPatience = seconds(2);

constexpr std::size_t kMaxShownReason = 500;  // of each run in the status file, whose size is bounded

}  // namespace

Result<void> Daemon::Impl::prepare() {
  FEDGE_TRY(known, KnownClients::read(options_.state_directory));
  known_clients_ = std::move(known);
  known_asked_ = known_written_ = known_clients_.size();
  FEDGE_TRY(summed, SummedUpdates::read(options_.state_directory));
  summed_ = std::move(summed);
  FEDGE_TRY(identity, protocol::make_tls_identity(key_));
  identity_ = std::move(identity);
  addresses_ = membership_.coordinators;
  FEDGE_TRY(swarm, Swarm::create(io_,
                                 {.client = membership_.client,
                                  .identity = identity_,
                                  .software = options_.software,
                                  .on_event = [this](const Event& event) { report(event); },
                                  .unseal = [this](auto sealed) { return unseal(key_, sealed); }},
                                 options_.swarm));
  swarm_ = std::move(swarm);
  if (!options_.directory) return {};
  FEDGE_TRY(node, dht::DirectoryNode::open(io_, *options_.directory));
  directory_ = std::move(node);
  return {};
}

void Daemon::Impl::start() {
  status_.write();
  for (auto& kept : files_->take_up([this](const Event& event) { report(event); })) {
    // An earlier process without these options may have left an update without masks or noise. Forgetting
    // one that has noise is harmless: the noise is derived from a key, so training it again gives the same
    // update.
    const char* insists =
        options_.secure.required
            ? "the saved update is not masked, but this client was started with --only-secure"
        : options_.max_epsilon
            ? "the saved update may have no noise, but this client was started with --max-epsilon"
        : options_.require_noise
            ? "the saved update may have no noise, but this client was started with --require-noise"
            : nullptr;
    if (insists != nullptr && !protocol::is_masked(kept.pending.offer.update.codec)) {
      files_->forget(kept.pending.request.run);
      report(Event{Severity::kWarning, "update.dropped", {}}.with("reason", insists));
      continue;
    }
    parts_[kept.pending.request.run].update = std::move(kept.payload);
    step(ClientEngine::Resumed{std::move(kept.pending.request), std::move(kept.pending.offer)});
  }
  step(ClientEngine::Start{});
}

void Daemon::Impl::report(const Event& event) {
  status_.note(event);
  if (options_.on_event) options_.on_event(event);
}

void Daemon::Impl::step(const ClientEngine::Input& input) {
  std::vector<ClientEngine::Effect> effects;
  engine_.step(input, {now(), rng_}, effects);
  for (const auto& effect : effects) perform(effect);
  if (const auto* received = std::get_if<ClientEngine::Received>(&input))
    if (const auto* request = std::get_if<protocol::TrainRequest>(&received->message))
      repeat_session(*request);
  sync_sessions();
  arm_timer();
  show_status();
}

// Writes the status at most once a second: only people read it.
void Daemon::Impl::show_status() {
  Activity activity{.link = engine_.link_name(), .runs = {}};
  for (const auto& part : engine_.parts())
    activity.runs.push_back(
        {parts_[part.run].name, part.work, part.task, clean_text(part.reason, kMaxShownReason)});
  status_.set(std::move(activity));
  if (engine_.stopped()) return status_.write();
  if (!status_.changed() || status_due_) return;
  status_due_ = true;
  status_timer_.after(std::chrono::seconds(1), [self = shared_from_this()] {
    self->status_due_ = false;
    self->status_.write();
  });
}

void Daemon::Impl::arm_timer() {
  const auto deadline = engine_.next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.at(started_ + deadline->time_since_epoch(), [self = shared_from_this()] { self->step(Expired{}); });
}

void Daemon::Impl::perform(const ClientEngine::Effect& effect) {
  std::visit(Overloaded{[&](const ClientEngine::Connect&) { connect(); },
                        [&](const ClientEngine::Disconnect& disconnect) {
                          if (link_) link_->close(disconnect.reason);
                        },
                        [&](const ClientEngine::Send& message) { send(message.message); },
                        [&](const ClientEngine::PrepareRun& run) { prepare(run.description); },
                        [&](const ClientEngine::FetchModel& model) { fetch(model); },
                        [&](const ClientEngine::Train& work) { train(work); },
                        [&](const ClientEngine::Publish& record) { publish(record); },
                        [&](const ClientEngine::Abandon& abandoned) { abandon(abandoned.run); },
                        [&](const ClientEngine::ForgetRun& over) { forget(over.run); },
                        [&](const ClientEngine::Revoked& word) { revoked(word.reason); },
                        [&](const ClientEngine::Finished&) { finish(); },
                        [&](const Event& event) {
                          report(event);
                          if (event.name == "run.ended") run_ended();
                        }},
             effect);
}

void Daemon::Impl::run_ended() {
  if (!options_.stop_after_run) return;
  // Post it: this effect is being executed inside a step.
  protocol::post(io_, [self = shared_from_this()] {
    if (!self->engine_.takes_part()) self->step(ClientEngine::Stop{});
  });
}

// Stops a daemon that was started for one run only. Any other daemon waits for its owner: if it exited, its
// supervisor would restart it, and it would ask again.
void Daemon::Impl::revoked(const std::string& reason) {
  const std::string remedy = "stop this daemon, then join with a new token and an empty state directory";
  report(Event{Severity::kError, "client.revoked", {}}.with("reason", reason).with("remedy", remedy));
  if (!options_.stop_after_run) return;
  failure_ = Error{ErrorCode::kRefused, "the coordinator has revoked this client (" + reason +
                                            "): join with a new token and an empty state directory"};
  // Post it: this effect is being executed inside a step.
  protocol::post(io_, [self = shared_from_this()] { self->step(ClientEngine::Stop{}); });
}

void Daemon::Impl::connect() {
  const auto next = [self = shared_from_this()] {
    self->connect_to(self->addresses_[self->next_address_++ % self->addresses_.size()]);
  };
  if (!directory_) return next();
  search_ = find_coordinator({io_, directory_->directory(), kSearchPatience}, membership_.coordinator_key,
                             [self = shared_from_this(), next](const Result<FoundCoordinator>& found) {
                               if (self->engine_.stopped()) return;
                               if (found) self->prefer(found->addresses);
                               next();
                             });
}

// Tries the announced addresses first, then the known ones.
void Daemon::Impl::prefer(const std::vector<protocol::Address>& announced) {
  std::vector<protocol::Address> all = announced;
  for (const protocol::Address& known : membership_.coordinators)
    if (std::find(all.begin(), all.end(), known) == all.end()) all.push_back(known);
  if (all == addresses_) return;
  report(Event{Severity::kInfo, "coordinator.found", {}}.with("address", protocol::to_string(all.front())));
  addresses_ = std::move(all);
  next_address_ = 0;
}

// Moves this address to the front, for a later start at which the directory may not answer.
void Daemon::Impl::remember(const protocol::Address& address) {
  auto& known = membership_.coordinators;
  if (known.front() == address) return;
  std::erase(known, address);
  known.insert(known.begin(), address);
  if (known.size() > protocol::kMaxTokenAddresses) known.resize(protocol::kMaxTokenAddresses);
  worker_.post([weak = weak_from_this(), membership = membership_] {
    const auto self = weak.lock();
    if (!self) return;
    const auto written = write_membership(self->options_.state_directory, membership);
    if (written) return;
    protocol::post(self->io_, [self, error = written.error()] {
      self->report(Event{Severity::kWarning, "membership.save_failed", {}}.with("reason", error.message));
    });
  });
}

void Daemon::Impl::connect_to(const protocol::Address& address) {
  protocol::connect(
      io_, identity_, address, membership_.coordinator_key,
      [self = shared_from_this(), address](Result<std::shared_ptr<protocol::Link>> connected) {
        if (self->engine_.stopped()) {
          if (connected) (*connected)->close("client stopped");
          return;
        }
        if (!connected) return self->disconnected(connected.error());
        self->link_ = *connected;
        greet(self->link_,
              {.software = self->options_.software,
               .listens = self->swarm_->listens(),
               .on_goodbye =
                   [self](const protocol::Goodbye& word) { self->step(ClientEngine::Received{word}); }},
              [self, address, asked = self->now()](Result<protocol::Welcome> welcome) {
                self->round_trip_ = self->now() - asked;
                if (welcome) {
                  self->remember(address);
                  return self->use(self->link_, *welcome);
                }
                if (self->link_) std::exchange(self->link_, nullptr)->close("no welcome");
                self->disconnected(welcome.error());
              });
      });
}

void Daemon::Impl::use(std::shared_ptr<protocol::Link> link, const protocol::Welcome& welcome) {
  link->set_callbacks({.on_message =
                           [self = shared_from_this()](const protocol::Message& message) {
                             if (!self->swarm_->received(message) && !self->share(message) &&
                                 !self->handle_secure_message(message))
                               self->step(ClientEngine::Received{message});
                           },
                       .on_closed =
                           [self = shared_from_this()](const Error& error) {
                             self->link_.reset();
                             self->swarm_->use(nullptr);
                             self->fetching_.reset();
                             for (auto& [run, part] : self->parts_) part.serving.reset();
                             self->disconnected(error);
                           }});
  // Posted before any job of a run that begins later.
  worker_.post([weak = weak_from_this(), going = welcome.runs] {
    if (const auto self = weak.lock()) forget_other_runs(self->options_.state_directory, going);
  });
  swarm_->use(link);
  step(ClientEngine::Connected{welcome});
}

void Daemon::Impl::send(const protocol::Message& message) {
  if (!link_) return;
  if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message)) {
    if (withhold(*offer)) return;
    Part& part = parts_[offer->run];
    // In serverless runs the other clients get the update from the swarm.
    if (!part.prepared || !part.prepared->aggregate) {
      part.serving = offer->update;
      link_->serve(offer->update, part.update);
    }
  }
  link_->send(message);
}

// The last of three checks against unmasked updates (the others: ClientEngine::check_task, OutgoingUpdate).
bool Daemon::Impl::withhold(const protocol::UpdateOffer& offer) {
  const Part& part = parts_[offer.run];
  const bool masks = options_.secure.required || (part.prepared && part.prepared->masking);
  if (!masks || protocol::is_masked(offer.update.codec)) return false;
  report(Event{Severity::kError, "update.withheld", {}}
             .with("run", part.name)
             .with("round", std::int64_t{offer.round.value()})
             .with("reason", "the update is not masked, and this client may send only masked updates"));
  return true;
}

void Daemon::Impl::finish() {
  task_stop_.request_stop();
  timer_.cancel();
  training_timer_.cancel();
  status_timer_.cancel();
  if (link_) std::exchange(link_, nullptr)->close("client stopped");
  swarm_->shut_down();
  search_ = {};
  // Post it: the directory must not be destroyed within one of its callbacks.
  protocol::post(io_, [self = shared_from_this()] { self->directory_.reset(); });
  worker_.stop();
  writer_.stop();
  if (finished_) protocol::post(io_, finished_);
  unfinished_.reset();
}

void Daemon::Impl::shut_down() {
  timer_.cancel();
  training_timer_.cancel();
  status_timer_.cancel();
  search_ = {};
  directory_.reset();
  swarm_->shut_down();
  task_stop_.request_stop();
  worker_.stop();
  writer_.stop();
  for (auto& [run, part] : parts_) {
    if (part.trainer) part.trainer->leave();
    if (part.shared) part.shared->end();  // ignore pending results of the worker
  }
  worker_.join();
  writer_.join();
  {
    std::vector<std::jthread> endings;  // each may take seconds
    for (auto& [run, part] : parts_)
      if (part.trainer) endings.emplace_back([&trainer = *part.trainer] { trainer.shut_down(); });
  }
  // Forget here what the worker had no time to forget.
  std::vector<RunId> held;
  for (const auto& part : engine_.parts())
    if (engine_.holds_update(part.run)) held.push_back(part.run);
  files_->forget_others(held);
  // Breaks a cycle: the callbacks of an open link hold this object, which holds the link.
  if (const auto link = std::exchange(link_, nullptr)) link->set_callbacks({});
}

Daemon::Daemon(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() { impl_->shut_down(); }

Result<std::unique_ptr<Daemon>> Daemon::create(boost::asio::io_context& io, DaemonOptions options) {
  FEDGE_TRY(membership, read_membership(options.state_directory));
  FEDGE_TRY(lock, DirectoryLock::acquire(options.state_directory));
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

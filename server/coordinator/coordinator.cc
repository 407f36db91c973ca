#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/crypto/sha256.h"
#include "core/platform/calendar.h"
#include "core/platform/heap.h"
#include "protocol/limits.h"
#include "protocol/session/loop.h"
#include "server/audit_log.h"
#include "server/backup/backup_lock.h"
#include "server/contact/key_rotation.h"
#include "server/coordinator/detail/coordinator_impl.h"
#include "server/data_directory.h"
#include "server/store/run_evidence.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

constexpr std::size_t kDeparturesToTrim = 64;
constexpr std::chrono::seconds kAnnounce{5};  // interval of announce()
constexpr std::chrono::milliseconds kLockAgain{20};
static_assert(kMaxOpenRuns <= protocol::kMaxRunsInProgress, "a Welcome names them all");

Result<DirectoryLock> lock_directory(const std::filesystem::path& directory, Duration patience) {
  for (std::chrono::milliseconds waited{0};; waited += kLockAgain) {
    auto lock = DirectoryLock::acquire(directory);
    if (lock || lock.error().code != ErrorCode::kUnavailable || waited >= patience) return lock;
    std::this_thread::sleep_for(kLockAgain);
  }
}

}  // namespace

Result<void> Coordinator::Impl::open_queue() {
  const auto file = run_store_path(options_.data_directory);
  // Fails if the store is missing although the directory had runs: a new store must not replace it.
  if (!identity_of(file)) FEDGE_TRY_VOID(check_runs_kept(options_.data_directory, RunNumber(0)));
  FEDGE_TRY(queue, RunQueue::open(io_, file));
  queue_ = std::move(queue);
  FEDGE_TRY(highest, queue_->highest());
  FEDGE_TRY_VOID(check_runs_kept(options_.data_directory, highest));
  FEDGE_TRY(runs, queue_->runs());
  runs_ = std::move(runs);
  return {};
}

Result<void> Coordinator::Impl::listen(std::shared_ptr<protocol::TlsIdentity> identity) {
  gate_.on_admitted(protocol::weakly(
      this, [this](ClientId client, std::shared_ptr<protocol::Link> link, const protocol::Hello& hello) {
        admit(client, std::move(link), hello);
      }));
  gate_.on_expelled(
      protocol::weakly(this, [this](ClientId client, const protocol::Link& link, const Error& why) {
        departed(client, &link, why.code == ErrorCode::kRefused);
      }));
  gate_.on_changed(protocol::weakly(this, [this](ClientId client) {
    for (const auto& [id, host] : hosts_) host->reconsider(client);
  }));
  gate_.on_placed(protocol::weakly(
      this, [this](ClientId client, const std::string& project) { live()->set_project(client, project); }));
  gate_.on_revoked(protocol::weakly(this, [this](ClientId client) {
    for (const auto& [id, host] : hosts_) host->revoked(client);
  }));
  gate_.on_event(protocol::weakly(this, [this](const Event& event) { report(event); }));
  protocol::ListenOptions door = options_.connections;
  door.address = options_.listen;
  door.on_refused = protocol::weakly(
      this, [this](const protocol::Address& peer, const Error& why) { gate_.refused(peer, why); });
  FEDGE_TRY(listener, protocol::listen(io_, std::move(identity), door,
                                       protocol::weakly(this, [this](std::shared_ptr<protocol::Link> link) {
                                         gate_.receive(std::move(link));
                                       })));
  listener_ = std::move(listener);
  return {};
}

// Returns the addresses that the directory gives to clients.
Result<std::vector<protocol::Address>> Coordinator::Impl::addresses_to_announce() const {
  if (!options_.directory->announce.empty()) return options_.directory->announce;
  if (!options_.addresses.empty()) return options_.addresses;
  const protocol::Address here = address();
  if (here.host == "0.0.0.0" || here.host == "::")
    return invalid(
        "directory.announce: the coordinator listens on all addresses of this machine, so this key must name "
        "the address at which clients reach the coordinator");
  return std::vector{here};
}

Result<void> Coordinator::Impl::enter_directory(SecretKey key) {
  if (!options_.directory) return {};
  FEDGE_TRY(addresses, addresses_to_announce());
  if (!directory_) {
    FEDGE_TRY(node, dht::DirectoryNode::open(io_, options_.directory->node));
    directory_ = std::move(node);
    report(Event{Severity::kInfo, "directory.joined", {}}.with("port",
                                                               std::int64_t{directory_->directory().port()}));
  }
  if (announcer_) announcer_->withdraw();
  announcer_.emplace(Announcer::Options{.directory = directory_->directory(),
                                        .key = std::move(key),
                                        .addresses = std::move(addresses),
                                        .now = calendar_time,
                                        .on_event = [this](const Event& event) { report(event); }});
  return {};
}

Result<void> Coordinator::Impl::take_key(SecretKey key) {
  FEDGE_TRY(identity, protocol::make_tls_identity(key));
  listener_->set_identity(std::move(identity));
  FEDGE_TRY_VOID(enter_directory(std::move(key)));
  announce_runs();
  say_goodbye("the coordinator's key was replaced by the announced one; connect again");
  return {};
}

void Coordinator::Impl::open_traces(const PublicKey& key) {
  if (!options_.traces) return;
  const std::string& software = options_.software;
  const auto tell = protocol::weakly(this, [this](const Event& event) { report(event); });
  exporter_ = std::make_shared<TraceExporter>(TraceExporter::Options{
      .endpoint = *options_.traces,
      .resource = {.version = software.substr(software.find(' ') + 1),
                   .instance = to_hex(sha256(to_hex(key.bytes))).substr(0, 32)},
      .report = [this, tell](const Event& event) { protocol::post(io_, [tell, event] { tell(event); }); }});
}

void Coordinator::Impl::announce() {
  if (!announcer_ || finished_) return;
  announcer_->refresh();
  announce_timer_.after(kAnnounce, protocol::weakly(this, [this] { announce(); }));
}

void Coordinator::Impl::announce_runs() {
  if (!announcer_) return;
  std::vector<Announcer::Run> open;
  for (const RunRecord& run : runs_)
    if (run.status == RunStatus::kPending || run.status == RunStatus::kRunning)
      open.push_back({run.id, run.name});
  announcer_->set_runs(open);
}

Result<RunRecord> Coordinator::Impl::submit(const run::RunConfig& run) {
  FEDGE_TRY_VOID(check_run(run));
  const AuditLog audit(options_.data_directory);
  std::optional<std::uint64_t> entry;
  auto submitted = queue_->submit(run.name, run.canonical, [&](const RunRecord& fresh) -> Result<void> {
    FEDGE_TRY(number,
              audit.record(
                  {operator_name(), "run.submitted", "run " + fresh.name, {{"run_id", text_of(fresh.id)}}}));
    entry = number;
    return {};
  });
  if (!submitted && entry)
    (void)audit.append(change_failed(Actor{}, *entry, "run.submitted", submitted.error().message));
  return submitted;
}

void Coordinator::Impl::start() {
  gate_.watch();
  keeper_->start(protocol::weakly(this, [this] {
    if (finished_) return;
    end_waits();
    rotate_audit_log();
    contact_.look();
  }));
  announce();
  queue_->watch(protocol::weakly(this, [this](const Result<std::vector<RunRecord>>& runs) {
    if (finished_) return;
    if (runs) {
      unreadable_.clear();
      runs_ = *runs;
      announce_runs();
      arrange();
    } else if (std::exchange(unreadable_, runs.error().message) != runs.error().message) {
      report(Event{Severity::kError, "runs.unavailable", {}}.with("reason", runs.error().message));
    }
  }));
}

Result<void> Coordinator::Impl::check() {
  if (!unreadable_.empty()) return Error{ErrorCode::kUnavailable, unreadable_};
  const auto book = gate_.enrolled();
  return book ? Result<void>() : book.error();
}

Coordinator::Activity Coordinator::Impl::activity() const {
  Activity activity{peers_.links().size(), 0};
  for (const auto& [id, host] : hosts_) activity.tasks += host->tasks();
  return activity;
}

void Coordinator::Impl::admit(ClientId client, std::shared_ptr<protocol::Link> link,
                              const protocol::Hello& hello) {
  if (finished_) return link->close("the coordinator is stopping");
  if (const auto old = peers_.find(client)) {
    departed(client, old.get());
    replaced(client, old->peer_address(), link->peer_address());
    old->send(protocol::Goodbye{ErrorCode::kStale,
                                "this client opened another connection, from " + link->peer_address()});
    old->close("this client opened another connection");
  }
  link->set_callbacks(
      {.on_message = protocol::weakly(
           this, [this, client](const protocol::Message& message) { received(client, message); }),
       .on_closed = protocol::weakly(this, [this, client, raw = link.get()](const Error& error) {
         report(Event{Severity::kInfo, "client.disconnected", {}}
                    .with("client", std::int64_t{client.value()})
                    .with("reason", error.message));
         departed(client, raw);
       })});
  if (const auto told = seeder_.connected(client, link, hello.listens); !told)
    report(Event{Severity::kWarning, "peer.announce_failed", {}}
               .with("client", std::int64_t{client.value()})
               .with("reason", told.error().message));
  keeper_->connected(client, *link, hello);
  peers_.add(client, std::move(link));
  if (understands_contact(hello)) {
    informed_.insert(client);
    tell(client);
  } else {
    live()->fleet.tells_key(client, std::nullopt);
  }
  for (const auto& [id, host] : hosts_) host->joined(client);
}

void Coordinator::Impl::replaced(ClientId client, const std::string& from, const std::string& to) {
  const std::string name = std::to_string(client.value());
  const Time now(std::chrono::steady_clock::now() - started_);
  if (replacements_.full(name, now) || !replacements_.count(name, now)) return;
  report(Event{Severity::kError, "key.cloned", {}}
             .with("client", std::int64_t{client.value()})
             .with("addresses", from + " and " + to)
             .with("reason",
                   "two devices use this client's key in turn, so its state directory was copied or stolen; "
                   "revoke the client and let each legitimate device join again with a new key"));
  if (!cloned_.insert(client).second) return;
  record({operator_name(), "key.cloned", "client " + name, {{"addresses", from + " and " + to}}});
}

void Coordinator::Impl::record(const AuditEvent& event) {
  opener_.post([self = shared_from_this(), event] {
    const auto done = AuditLog(self->options_.data_directory).append(event);
    if (done) return;
    protocol::post(self->io_, [self, reason = done.error().message] {
      self->report(Event{Severity::kError, "audit.write_failed", {}}.with("reason", reason));
    });
  });
}

void Coordinator::Impl::rotate_audit_log() {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(options_.data_directory / "audit.log", ignored);
  if (ignored || options_.audit_rotate == 0 || size < options_.audit_rotate || rotating_) return;
  rotating_ = true;
  opener_.post([self = shared_from_this()] {
    const auto done = AuditLog(self->options_.data_directory).rotate(self->options_.audit_rotate);
    protocol::post(self->io_, [self, done] {
      self->rotating_ = false;
      if (!done && !self->finished_)
        self->report(Event{Severity::kError, "audit.write_failed", {}}.with("reason", done.error().message));
    });
  });
}

void Coordinator::Impl::departed(ClientId client, const protocol::Link* link, bool for_good) {
  if (const auto peer = peers_.find(client); !peer || peer.get() != link) return;  // replaced meanwhile
  keeper_->disconnected(client, *link);
  peers_.remove(client);
  informed_.erase(client);
  seeder_.departed(client);
  // Returns freed memory to the system once as many clients have left as remain. That is rare enough to
  // cost nothing and often enough for the process to shrink with its clients.
  if (++departures_ >= std::max(kDeparturesToTrim, peers_.links().size())) {
    departures_ = 0;
    return_freed_memory();
  }
  for (const auto& [id, host] : hosts_) host->left(client, for_good);
}

void Coordinator::Impl::received(ClientId client, const protocol::Message& message) {
  const protocol::Sender sender = protocol::frame_type_of(message).sender;
  const bool from_clients = sender == protocol::Sender::kClient || sender == protocol::Sender::kEither;
  if (const auto run = protocol::run_of(message); run && from_clients) return pass_on(client, *run, message);
  if (const auto* kept = std::get_if<protocol::ContactKept>(&message)) {
    const auto link = peers_.find(client);
    if (link && kept->next_key == contact_.contact().next_key)
      live()->fleet.keeps_key(client, link->peer(), kept->next_key);
    return;
  }
  if (swarm::Peer::understands(message)) return seeder_.received(client, message);
  if (std::holds_alternative<protocol::Goodbye>(message)) return;  // on_closed reports its reason
  misbehaved(client, std::string(protocol::name_of(message)) + ", which clients must not send");
}

void Coordinator::Impl::misbehaved(ClientId client, const std::string& sent) {
  const auto link = peers_.find(client);
  if (!link) return;
  const std::string reason = "sent " + sent;
  report(Event{Severity::kWarning, "client.misbehaved", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason", reason));
  link->send(protocol::Goodbye{ErrorCode::kInvalid, reason});
  link->close(reason);
}

void Coordinator::Impl::pass_on(ClientId client, RunId run, const protocol::Message& message) {
  if (const auto host = hosts_.find(run); host != hosts_.end())
    return host->second->received(client, message);
  // An update for a paused run needs no answer: its client keeps it until the run continues.
  if (!std::holds_alternative<protocol::UpdateOffer>(message)) return;
  const auto open = open_runs();
  if (std::binary_search(open.begin(), open.end(), run)) return;
  if (const auto link = peers_.find(client)) link->send(protocol::RunEnded{run, "the run has ended"});
}

std::vector<RunId> Coordinator::Impl::open_runs() const {
  std::vector<RunId> open;
  for (const RunRecord& run : runs_)
    if (run.started != 0 || hosts_.contains(run.id)) open.push_back(run.id);
  std::sort(open.begin(), open.end());
  return open;
}

Coordinator::Coordinator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::~Coordinator() { impl_->shut_down(); }

Result<std::unique_ptr<Coordinator>> Coordinator::create(boost::asio::io_context& io,
                                                         const CoordinatorOptions& options,
                                                         const RunCallbacks& callbacks) {
  FEDGE_TRY_VOID(make_directory(options.data_directory, 0700));
  FEDGE_TRY(lock, lock_directory(options.data_directory, options.lock_patience));
  FEDGE_TRY_VOID(check_restored(options.data_directory));
  FEDGE_TRY(taken, take_up_key(options.data_directory));
  auto& [key, made_good] = taken;
  FEDGE_TRY(identity, protocol::make_tls_identity(key));
  const auto impl = std::make_shared<Impl>(io, options, callbacks, std::move(lock));
  impl->open_contact(key.public_key());
  if (!made_good.empty())
    callbacks.on_event(
        Event{Severity::kError, "enrolment.repaired", {}}
            .with("first_entry", static_cast<std::int64_t>(made_good.front().sequence))
            .with("last_entry", static_cast<std::int64_t>(made_good.back().sequence))
            .with(
                "reason",
                "the audit log contains changes that the enrolment book lacks, as after an older copy of the "
                "book was restored; the recorded enrolments and revocations were added to the book again"));
  impl->open_traces(key.public_key());
  FEDGE_TRY_VOID(impl->open_queue());
  FEDGE_TRY_VOID(impl->listen(std::move(identity)));
  FEDGE_TRY_VOID(impl->enter_directory(std::move(key)));
  FEDGE_TRY_VOID(write_addresses(options.data_directory, impl->address(), options.addresses));
  return std::unique_ptr<Coordinator>(new Coordinator(impl));
}

protocol::Address Coordinator::address() const { return impl_->address(); }
Result<RunRecord> Coordinator::submit(const run::RunConfig& run) { return impl_->submit(run); }
void Coordinator::start() { impl_->start(); }
Coordinator::Activity Coordinator::activity() const { return impl_->activity(); }
Result<std::size_t> Coordinator::enrolled() const { return impl_->enrolled(); }
Result<void> Coordinator::check() const { return impl_->check(); }
const std::vector<RunRecord>& Coordinator::runs() const { return impl_->runs(); }
std::shared_ptr<Live> Coordinator::live() const { return impl_->live(); }
std::optional<TraceCounts> Coordinator::traces() const { return impl_->traces(); }
dht::NetworkDirectory* Coordinator::directory() const { return impl_->directory(); }
void Coordinator::stop(const std::string& reason) { impl_->stop(reason); }
const std::optional<Error>& Coordinator::failure() const { return impl_->failure_; }

}  // namespace fedge::server

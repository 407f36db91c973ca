#include "client/device/coordinator_link.h"

#include <sys/utsname.h>

#include <algorithm>
#include <utility>

#include "client/handshake.h"
#include "client/local/client_memory.h"
#include "core/tracing/trace_id.h"

namespace fedge::client {
namespace {

// "Linux aarch64"; empty if the system does not say.
std::string platform_name() {
  utsname system{};
  if (::uname(&system) != 0) return "";
  return std::string(system.sysname) + " " + system.machine;
}

constexpr std::chrono::seconds kStoreAgain{5};
constexpr std::size_t kMostContacts = 16;  // of one connection: each is written to the disk

// How long to search the directory before trying the last known addresses.
constexpr Duration kSearchPatience = seconds(2);

}  // namespace

void CoordinatorLink::begin(Filter filter) {
  filter_ = std::move(filter);
  addresses_ = context_.membership.coordinators;
}

void CoordinatorLink::connect() {
  const auto next = [self = context_.alive(this)] {
    self->connect_to(self->addresses_[self->next_address_++ % self->addresses_.size()]);
  };
  if (!context_.directory) return next();
  // Looks for both keys in turn: for some minutes after a rotation, the directory has records of both.
  const Membership& known = context_.membership;
  const bool in_turn = known.next_key && searches_++ % 2 == 1;
  search_ = find_coordinator({context_.io, context_.directory->directory(), kSearchPatience},
                             in_turn ? *known.next_key : known.coordinator_key,
                             [self = context_.alive(this), next](const Result<FoundCoordinator>& found) {
                               if (self->context_.engine->stopped()) return;
                               if (found) self->prefer(found->addresses);
                               next();
                             });
}

// Tries the announced addresses first, then the known ones.
void CoordinatorLink::prefer(const std::vector<protocol::Address>& announced) {
  std::vector<protocol::Address> all = announced;
  for (const protocol::Address& known : context_.membership.coordinators)
    if (std::find(all.begin(), all.end(), known) == all.end()) all.push_back(known);
  if (all == addresses_) return;
  context_.report(
      Event{Severity::kInfo, "coordinator.found", {}}.with("address", protocol::to_string(all.front())));
  addresses_ = std::move(all);
  next_address_ = 0;
}

// Moves this address to the front, for a later start at which the directory may not answer.
void CoordinatorLink::remember(const protocol::Address& address) {
  auto& known = context_.membership.coordinators;
  if (known.front() == address) return;
  std::erase(known, address);
  known.insert(known.begin(), address);
  if (known.size() > protocol::kMaxCoordinatorAddresses) known.resize(protocol::kMaxCoordinatorAddresses);
  store_membership();
}

void CoordinatorLink::store_membership() {
  context_.worker.post([weak = context_.weak(this), membership = context_.membership, news = news_.size()] {
    const auto self = weak.lock();
    if (!self) return;
    const auto written = write_membership(self->context_.options.state_directory, membership);
    protocol::post(self->context_.io,
                   [self, written, kept = membership.next_key, news] { self->stored(written, kept, news); });
  });
}

void CoordinatorLink::stored(const Result<void>& written, const std::optional<PublicKey>& kept,
                             std::size_t news) {
  if (!written) {
    context_.report(
        Event{Severity::kWarning, "membership.save_failed", {}}.with("reason", written.error().message));
    return store_again_.after(kStoreAgain, [self = context_.alive(this)] { self->store_membership(); });
  }
  const auto end = news_.begin() + static_cast<std::ptrdiff_t>(std::min(news, news_.size()));
  for (const Event& event : std::vector<Event>(news_.begin(), end)) context_.report(event);
  news_.erase(news_.begin(), end);
  // Only a coordinator that has sent a Contact understands the answer.
  if (kept && link_ && contacts_ > 0 && kept == context_.membership.next_key)
    link_->send(protocol::ContactKept{*kept});
}

void CoordinatorLink::take_contact(const protocol::Contact& contact) {
  if (++contacts_ > kMostContacts) {
    if (contacts_ == kMostContacts + 1)
      context_.report(Event{Severity::kWarning, "contact.ignored", {}}.with(
          "reason",
          "the coordinator changes its addresses or its next key too often; later changes count after "
          "the next connection"));
    return;
  }
  Membership changed = context_.membership;
  if (!contact.addresses.empty()) {
    changed.coordinators.clear();
    for (const std::string& text : contact.addresses)
      if (auto address = protocol::parse_address(text)) changed.coordinators.push_back(std::move(*address));
    // The address that answers stays until one of the others has.
    if (std::ranges::find(changed.coordinators, here_) == changed.coordinators.end()) {
      if (changed.coordinators.size() == protocol::kMaxCoordinatorAddresses) changed.coordinators.pop_back();
      changed.coordinators.push_back(here_);
    }
  }
  changed.next_key = contact.next_key == changed.coordinator_key ? std::nullopt : contact.next_key;
  // The order does not count: the address that answered last comes first.
  const bool addresses = !std::ranges::is_permutation(changed.coordinators, context_.membership.coordinators);
  if (!addresses) changed.coordinators = context_.membership.coordinators;
  const bool key = changed.next_key != context_.membership.next_key;
  context_.membership = std::move(changed);
  if (addresses) {
    addresses_ = context_.membership.coordinators;
    next_address_ = 0;
    std::string all;
    for (const std::string& text : contact.addresses) all += (all.empty() ? "" : " ") + text;
    news_.push_back(Event{Severity::kInfo, "coordinator.addresses", {}}.with("addresses", all));
  }
  if (key)
    news_.push_back(contact.next_key ? Event{Severity::kInfo, "coordinator.next_key", {}}.with(
                                           "key", to_hex(*contact.next_key))
                                     : Event{Severity::kInfo, "coordinator.next_key_withdrawn", {}});
  // Also without a change: the coordinator may have lost the answer.
  if (addresses || key || contact.next_key) store_membership();
}

void CoordinatorLink::check_key(const PublicKey& key) {
  if (key == context_.membership.coordinator_key) return;
  context_.membership.take_key(key);
  news_.push_back(Event{Severity::kInfo, "coordinator.key_replaced", {}}.with("key", to_hex(key)));
  store_membership();
}

void CoordinatorLink::connect_to(const protocol::Address& address) {
  protocol::connect(
      context_.io, context_.identity, address, context_.membership.pinned(),
      [self = context_.alive(this), address](Result<std::shared_ptr<protocol::Link>> connected) {
        if (self->context_.engine->stopped()) {
          if (connected) (*connected)->close("client stopped");
          return;
        }
        if (!connected) return self->step(ClientEngine::Disconnected{connected.error()});
        self->link_ = *connected;
        self->here_ = address;
        self->contacts_ = 0;
        self->check_key(self->link_->peer());
        greet(self->link_,
              {.software = self->context_.options.software,
               .listens = self->context_.swarm->listens(),
               .platform = platform_name(),
               .features = {protocol::kContactFeature},
               .on_goodbye =
                   [self](const protocol::Goodbye& word) { self->step(ClientEngine::Received{word}); }},
              [self, address, asked = self->context_.now()](Result<protocol::Welcome> welcome) {
                self->welcomed(address, asked, welcome);
              });
      });
}

void CoordinatorLink::welcomed(const protocol::Address& address, Time asked,
                               const Result<protocol::Welcome>& welcome) {
  round_trip_ = context_.now() - asked;
  if (welcome) {
    remember(address);
    return use(link_, *welcome);
  }
  if (link_) std::exchange(link_, nullptr)->close("no welcome");
  step(ClientEngine::Disconnected{welcome.error()});
}

void CoordinatorLink::use(const std::shared_ptr<protocol::Link>& link, const protocol::Welcome& welcome) {
  link->set_callbacks(
      {.on_message =
           [self = context_.alive(this)](const protocol::Message& message) {
             if (const auto* contact = std::get_if<protocol::Contact>(&message))
               self->take_contact(*contact);
             else if (!self->filter_(message))
               self->step(ClientEngine::Received{message});
           },
       .on_closed = [self = context_.alive(this)](const Error& error) { self->lost(error); }});
  // Posted before any job of a run that begins later.
  context_.worker.post([weak = context_.weak(this), going = welcome.runs] {
    if (const auto self = weak.lock()) forget_other_runs(self->context_.options.state_directory, going);
  });
  context_.swarm->use(link);
  step(ClientEngine::Connected{welcome});
}

void CoordinatorLink::lost(const Error& error) {
  link_.reset();
  context_.swarm->use(nullptr);
  fetching_.reset();
  serving_.clear();
  step(ClientEngine::Disconnected{error});
}

void CoordinatorLink::disconnect(const std::string& reason) {
  if (link_) link_->close(reason);
}

void CoordinatorLink::send(const protocol::Message& message) {
  if (!link_) return;
  if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message)) {
    if (withhold(*offer)) return;
    const DeviceRun& run = context_.runs[offer->run];
    // In serverless runs the other clients get the update from the swarm.
    if (!run.prepared || !run.prepared->aggregate) {
      serving_.insert_or_assign(offer->run, offer->update);
      link_->serve(offer->update, run.update);
    }
  }
  link_->send(message);
}

// The last of three checks against unmasked updates (the others: ClientRun::check, OutgoingUpdate).
bool CoordinatorLink::withhold(const protocol::UpdateOffer& offer) const {
  const DeviceRun& run = context_.runs[offer.run];
  const bool masks = context_.options.secure.required || (run.prepared && run.prepared->masking);
  if (!masks || protocol::is_masked(offer.update.codec)) return false;
  context_.report(
      Event{Severity::kError, "update.withheld", {}}
          .with("run", run.name)
          .with("round", std::int64_t{offer.round.value()})
          .with("reason", "the update is not masked, and this client may send only masked updates")
          .with("trace", trace_of(offer.run, offer.task())));
  return true;
}

void CoordinatorLink::fetch(const protocol::Manifest& manifest, std::shared_ptr<protocol::ChunkSink> sink,
                            std::function<void(const Result<void>&)> done) {
  if (!link_) return;  // the engine is about to get Disconnected
  fetching_ = manifest;
  link_->fetch(manifest, std::move(sink),
               [self = context_.alive(this), done = std::move(done)](Result<void> fetched) {
                 self->fetching_.reset();
                 done(fetched);
               });
}

void CoordinatorLink::cancel_fetch() {
  if (link_ && fetching_) link_->cancel_fetch(fetching_->id());
  fetching_.reset();
}

void CoordinatorLink::stop_serving(RunId run) {
  const auto found = serving_.extract(run);
  if (found.empty()) return;
  const bool shared =
      std::ranges::any_of(serving_, [&](const auto& other) { return other.second == found.mapped(); });
  if (link_ && !shared) link_->stop_serving(found.mapped().id());
}

void CoordinatorLink::close() {
  stop_searching();
  store_again_.cancel();
  if (link_) std::exchange(link_, nullptr)->close("client stopped");
}

void CoordinatorLink::let_go() {
  if (const auto link = std::exchange(link_, nullptr)) link->set_callbacks({});
}

}  // namespace fedge::client

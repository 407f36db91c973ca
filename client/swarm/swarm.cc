#include "client/swarm/swarm.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "client/handshake.h"
#include "client/swarm/dial_limits.h"
#include "client/swarm/named_objects.h"
#include "core/crypto/random.h"
#include "protocol/messages.h"
#include "protocol/session/loop.h"

namespace fedge::client {
namespace {

using protocol::Link;
using protocol::ObjectId;

constexpr Duration kTick = std::chrono::milliseconds(200);
constexpr Duration kFirstRetry = std::chrono::milliseconds(400);
constexpr Duration kLongestRetry = seconds(30);
// The client with the lower number connects to the other one, which tries itself after this delay.
constexpr Duration kOtherWay = seconds(3);
// Idle links are closed after this time.
constexpr Duration kIdle = seconds(60);
// The most clients to remember; further ones are ignored until some are forgotten.
constexpr std::size_t kMaxContacts = 4096;

class SwarmImpl final : public Swarm, public std::enable_shared_from_this<SwarmImpl> {
 public:
  SwarmImpl(boost::asio::io_context& io, Self self, const SwarmOptions& options)
      : io_(io), self_(std::move(self)), options_(options), timer_(io), ticker_(io) {}

  Result<void> start();

  const std::string& listens() const override { return listens_; }
  void use(std::shared_ptr<Link> link) override;
  bool received(const protocol::Message& message) override;
  void open(swarm::Exchange::Object object, std::function<void(const Result<void>&)> done) override;
  void open_as(const ObjectId& other, swarm::Exchange::Object object,
               std::function<void(const Result<void>&)> done) override;
  void close(const ObjectId& object) override;
  void begin_warmup(const protocol::WarmupPlan& plan, const ObjectId& own) override;
  void carry_out(const ObjectId& swarm, const protocol::WarmupSlot& slot) override;
  void end_warmup(const ObjectId& swarm, const ObjectId& other) override;
  const swarm::Peer::Figures& figures() const override { return exchange_->peer().figures(); }
  void shut_down() override;

 private:
  // Another client, as the coordinator described it.
  struct Contact {
    protocol::SwarmMember member;
    std::shared_ptr<Link> link;  // once the handshake is done
    bool dialling = false;
    bool banned = false;
    Time known_since{};
    Time next_try{};
    Duration retry = kFirstRetry;
    Time busy{};  // last time that there was something to exchange
  };
  using Contacts = std::map<ClientId, Contact>;

  Time now() const { return Time(std::chrono::steady_clock::now() - started_); }
  void arm(std::optional<Time> deadline);
  void tick();
  void take(const protocol::SwarmMembers& members);
  bool may_dial(const Contact& contact) const;
  void admit_like(const ObjectId& object, const ObjectId& other);
  void dial(ClientId client, Contact& contact);
  void dialled(ClientId client, const std::shared_ptr<Link>& link, const Result<protocol::Welcome>& welcome);
  void accepted(const std::shared_ptr<Link>& link);
  void greeted(const std::shared_ptr<Link>& link, const protocol::Message& message);
  void refuse(const std::shared_ptr<Link>& link, ErrorCode code, const std::string& reason);
  void linked(ClientId client, Contact& contact, std::shared_ptr<Link> link);
  void dropped(ClientId client, const std::string& reason);
  void report(const Event& event) const {
    if (self_.on_event) self_.on_event(event);
  }

  boost::asio::io_context& io_;
  Self self_;
  SwarmOptions options_;
  std::string listens_;
  std::unique_ptr<protocol::Listener> listener_;
  std::shared_ptr<swarm::Exchange> exchange_;
  Contacts contacts_;
  DialLimits limits_;
  NamedObjects named_{[this](const ObjectId& object) { return exchange_->is_open(object); }};
  protocol::Timer timer_;  // for the exchange's deadlines
  protocol::Timer ticker_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool ticking_ = false;
  bool stopped_ = false;
};

Result<void> SwarmImpl::start() {
  exchange_ = std::make_shared<swarm::Exchange>(
      swarm::PeerRules{.upload_limit = options_.upload_limit}, random_u64(),
      swarm::Exchange::Owner{
          .now = [this] { return now(); },
          .arm = [this](std::optional<Time> deadline) { arm(deadline); },
          .on_dropped = [this](ClientId client, const std::string& reason) { dropped(client, reason); },
          .self = self_.client,
          .unseal = self_.unseal});
  if (!options_.listen) return {};
  protocol::ListenOptions door;
  door.address = *options_.listen;
  FEDGE_TRY(listener, protocol::listen(io_, self_.identity, door,
                                       protocol::weakly(this, [this](const auto& link) { accepted(link); })));
  listener_ = std::move(listener);
  listens_ =
      options_.announce.empty() ? ":" + std::to_string(listener_->local_address().port) : options_.announce;
  return {};
}

void SwarmImpl::shut_down() {
  if (std::exchange(stopped_, true)) return;
  timer_.cancel();
  ticker_.cancel();
  if (listener_) listener_->stop();
  for (auto& [client, contact] : contacts_)
    if (const auto link = std::exchange(contact.link, nullptr)) {
      link->set_callbacks({});
      link->close("this client stops");
    }
}

void SwarmImpl::arm(std::optional<Time> deadline) {
  timer_.cancel();
  if (!deadline || stopped_) return;
  timer_.at(started_ + deadline->time_since_epoch(), protocol::weakly(this, [this] {
              if (!stopped_) exchange_->expired();
            }));
}

void SwarmImpl::use(std::shared_ptr<Link> link) {
  if (stopped_) return;
  if (!link) return exchange_->unlink(swarm::kCoordinator);
  if (const auto address = protocol::parse_address(link->peer_address()))
    limits_.coordinator_at(address->host);
  exchange_->link(swarm::kCoordinator, std::move(link));
}

bool SwarmImpl::received(const protocol::Message& message) {
  if (stopped_) return false;
  if (const auto* members = std::get_if<protocol::SwarmMembers>(&message)) {
    take(*members);
    return true;
  }
  if (!swarm::Peer::understands(message)) return false;
  exchange_->received(swarm::kCoordinator, message);
  return true;
}

void SwarmImpl::open(swarm::Exchange::Object object, std::function<void(const Result<void>&)> done) {
  if (stopped_) return;
  const ObjectId id = object.manifest.id();
  exchange_->open(std::move(object), std::move(done));
  exchange_->admit(id, swarm::kCoordinator);
  for (const ClientId client : named_.members(id)) exchange_->admit(id, client);
  tick();
}

void SwarmImpl::open_as(const ObjectId& other, swarm::Exchange::Object object,
                        std::function<void(const Result<void>&)> done) {
  if (stopped_) return;
  const ObjectId id = object.manifest.id();
  open(std::move(object), std::move(done));
  admit_like(id, other);
}

void SwarmImpl::admit_like(const ObjectId& object, const ObjectId& other) {
  named_.exchange_like(object, other);
  for (const ClientId client : named_.members(other)) exchange_->admit(object, client);
}

void SwarmImpl::begin_warmup(const protocol::WarmupPlan& plan, const ObjectId& own) {
  if (!stopped_) exchange_->begin_warmup(plan, own);
}

void SwarmImpl::carry_out(const ObjectId& swarm, const protocol::WarmupSlot& slot) {
  if (!stopped_) exchange_->carry_out(swarm, slot);
}

void SwarmImpl::end_warmup(const ObjectId& swarm, const ObjectId& other) {
  if (stopped_) return;
  exchange_->end_warmup(swarm);
  for (const ObjectId& object : named_.all_like(swarm))
    if (object != swarm) admit_like(object, other);
}

void SwarmImpl::close(const ObjectId& object) {
  if (stopped_) return;
  exchange_->close(object);
  exchange_->end_warmup(object);
  named_.forget(object);
}

void SwarmImpl::take(const protocol::SwarmMembers& members) {
  std::set<ClientId>& named = named_.name(members.object);
  const std::vector<ObjectId> objects = named_.all_like(members.object);
  for (const ClientId client : members.leave) {
    named.erase(client);
    for (const ObjectId& object : objects) exchange_->dismiss(object, client);
  }
  for (const protocol::SwarmMember& member : members.join) {
    if (member.client == self_.client || member.client == swarm::kCoordinator) continue;
    if (contacts_.size() >= kMaxContacts && !contacts_.contains(member.client)) continue;
    const auto [contact, fresh] = contacts_.try_emplace(member.client);
    if (fresh) contact->second.known_since = now();
    if (!fresh && contact->second.member.key != member.key) continue;  // a client's key never changes
    const bool moved = contact->second.member.address != member.address;
    contact->second.member = member;
    if (named.insert(member.client).second || moved) {
      contact->second.retry = kFirstRetry;
      contact->second.next_try = now();
    }
    for (const ObjectId& object : objects) exchange_->admit(object, member.client);
  }
  named_.forget_oldest();
  tick();
}

bool SwarmImpl::may_dial(const Contact& contact) const {
  if (contact.banned || contact.dialling || contact.link || contact.member.address.empty()) return false;
  if (now() < contact.next_try) return false;
  const bool mine = !listener_ || self_.client < contact.member.client;
  return mine || now() - contact.known_since >= kOtherWay;
}

void SwarmImpl::tick() {
  if (stopped_) return;
  for (auto next = contacts_.begin(); next != contacts_.end();) {
    const auto contact = next++;
    if (named_.names(contact->first)) {
      contact->second.busy = now();
      if (may_dial(contact->second) && named_.names_for_work(contact->first))
        dial(contact->first, contact->second);
    } else if (now() - contact->second.busy >= kIdle && !contact->second.dialling) {
      if (contact->second.link)
        contact->second.link->close("all transfers with this client have ended");
      else if (!contact->second.banned)
        contacts_.erase(contact);
    }
  }
  if (contacts_.empty() || std::exchange(ticking_, true)) return;
  ticker_.after(kTick, protocol::weakly(this, [this] {
                  ticking_ = false;
                  tick();
                }));
}

void SwarmImpl::dial(ClientId client, Contact& contact) {
  const auto address = protocol::parse_address(contact.member.address);
  if (!limits_.may_dial(address->host, now())) return;
  limits_.began(address->host, now());
  contact.dialling = true;
  contact.next_try = now() + contact.retry;
  contact.retry = std::min(2 * contact.retry, kLongestRetry);
  protocol::connect(
      io_, self_.identity, *address, contact.member.key,
      [self = shared_from_this(), client, host = address->host](Result<std::shared_ptr<Link>> connected) {
        self->limits_.ended(host, self->now(), connected.has_value());
        if (!connected) return self->dialled(client, nullptr, connected.error());
        const std::shared_ptr<Link> link = *connected;
        if (self->stopped_) return link->close("this client stops");
        greet(link, {.software = self->self_.software, .whom = "the other client"},
              [self, client, link](const Result<protocol::Welcome>& welcome) {
                self->dialled(client, link, welcome);
              });
      });
}

void SwarmImpl::dialled(ClientId client, const std::shared_ptr<Link>& link,
                        const Result<protocol::Welcome>& welcome) {
  if (stopped_) {
    if (link) link->close("this client stops");
    return;
  }
  const auto contact = contacts_.find(client);
  if (contact != contacts_.end()) contact->second.dialling = false;
  if (!welcome) {
    report(Event{Severity::kDebug, "peer.unreachable", {}}
               .with("client", std::int64_t{client.value()})
               .with("reason", welcome.error().message));
    if (link) link->close("no welcome");
    return;
  }
  if (contact == contacts_.end() || contact->second.link || contact->second.banned)
    return link->close("there is already a connection between these clients");
  linked(client, contact->second, link);
}

void SwarmImpl::accepted(const std::shared_ptr<Link>& link) {
  const std::weak_ptr<Link> weak = link;
  // The link keeps itself alive until it is closed, at the latest by the timeout for Hello.
  link->set_callbacks({.on_message = protocol::weakly(this,
                                                      [this, weak](const protocol::Message& message) {
                                                        if (const auto from = weak.lock())
                                                          greeted(from, message);
                                                      }),
                       .on_closed = {}});
}

void SwarmImpl::greeted(const std::shared_ptr<Link>& link, const protocol::Message& message) {
  if (stopped_) return link->close("this client stops");
  const auto* hello = std::get_if<protocol::Hello>(&message);
  if (hello == nullptr)
    return refuse(link, ErrorCode::kInvalid, "the first message of a connection must be hello");
  if (hello->min_version > protocol::kProtocolVersion || hello->max_version < protocol::kProtocolVersion)
    return refuse(link, ErrorCode::kUnsupported,
                  "this client supports protocol version " + std::to_string(protocol::kProtocolVersion));
  const auto known = std::ranges::find_if(contacts_, [&](const auto& contact) {
    return contact.second.member.key == link->peer() && named_.names(contact.first);
  });
  if (known == contacts_.end() || known->second.banned)
    return refuse(link, ErrorCode::kUnavailable, "this client exchanges no data with your key at present");
  // If both clients connect at the same time, the connection of the lower number is kept.
  if (known->second.link || (known->second.dialling && self_.client < known->first))
    return refuse(link, ErrorCode::kStale, "there is already a connection between these clients");
  link->authorise();
  link->send(protocol::Welcome{.version = protocol::kProtocolVersion,
                               .features = {},
                               .software = self_.software,
                               .client = known->first});
  linked(known->first, known->second, link);
}

void SwarmImpl::refuse(const std::shared_ptr<Link>& link, ErrorCode code, const std::string& reason) {
  link->send(protocol::Goodbye{code, reason});
  link->close(reason);
}

void SwarmImpl::linked(ClientId client, Contact& contact, std::shared_ptr<Link> link) {
  link->set_callbacks({.on_message = protocol::weakly(this,
                                                      [this, client](const protocol::Message& message) {
                                                        if (!stopped_) exchange_->received(client, message);
                                                      }),
                       .on_closed = protocol::weakly(this, [this, client, raw = link.get()](const Error&) {
                         const auto left = contacts_.find(client);
                         if (stopped_ || left == contacts_.end() || left->second.link.get() != raw) return;
                         left->second.link.reset();
                         left->second.next_try = now() + kFirstRetry;
                         exchange_->unlink(client);
                       })});
  contact.link = link;
  contact.retry = kFirstRetry;
  exchange_->link(client, std::move(link));
}

void SwarmImpl::dropped(ClientId client, const std::string& reason) {
  report(Event{Severity::kWarning, "peer.dropped", {}}
             .with("client", client == swarm::kCoordinator ? std::int64_t{-1} : std::int64_t{client.value()})
             .with("reason", reason));
  const auto contact = contacts_.find(client);
  if (contact == contacts_.end()) return;  // the coordinator: the exchange itself has dropped it
  contact->second.banned = true;
  if (contact->second.link) refuse(contact->second.link, ErrorCode::kInvalid, reason);
}

}  // namespace

Result<std::shared_ptr<Swarm>> Swarm::create(boost::asio::io_context& io, Self self,
                                             const SwarmOptions& options) {
  const auto swarm = std::make_shared<SwarmImpl>(io, std::move(self), options);
  FEDGE_TRY_VOID(swarm->start());
  return std::shared_ptr<Swarm>(swarm);
}

}  // namespace fedge::client

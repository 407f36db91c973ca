#include "server/coordinator/gatekeeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/crypto/sha256.h"
#include "protocol/session/admission.h"
#include "protocol/session/endpoint.h"
#include "protocol/session/loop.h"

namespace fedge::server {
namespace {

constexpr std::chrono::milliseconds kGateLook{250};

// Returns the peer's address without its port, which changes with each connection.
std::string household_of(const protocol::Link& link) {
  const auto address = protocol::parse_address(link.peer_address());
  return protocol::household(address ? address->host : link.peer_address());
}

Error pending(ClientId client) {
  const std::string number = std::to_string(client.value());
  return {
      ErrorCode::kUnavailable,
      "client " + number +
          " waits for approval; the operator of the coordinator can approve it with: fedge client approve " +
          number};
}

// Refuses a connection whose handshake was under way when the key was replaced.
const Error kKeyReplaced{ErrorCode::kUnavailable,
                         "the coordinator's key was replaced meanwhile; connect again"};

// Hides local errors from the peer; the details are in the log.
Error hidden(const Error& error) {
  if (error.code != ErrorCode::kUnavailable) return error;
  return {error.code, "the coordinator cannot check this client's key at present; try again later"};
}

Event about(const char* name, const protocol::Link& link, const std::string& reason) {
  return Event{Severity::kWarning, name, {}}.with("address", link.peer_address()).with("reason", reason);
}

}  // namespace

bool understands_contact(const protocol::Hello& hello) {
  return std::ranges::find(hello.features, protocol::kContactFeature) != hello.features.end();
}

// A client whose token is to be redeemed.
struct Gatekeeper::Joining {
  std::weak_ptr<protocol::Link> link;
  JoinAttempt attempt;
  std::string secret;
  std::string software;
  PublicKey key;
  std::string address;
};

// The enrolment book of the writer thread.
struct Gatekeeper::Writer {
  explicit Writer(const std::filesystem::path& data_directory) : enrolment(data_directory) {}
  Enrolment enrolment;  // only the worker uses it
  protocol::Worker worker;
};

struct Gatekeeper::Watch {
  explicit Watch(boost::asio::io_context& io) : timer(io) {}
  protocol::Timer timer;
};

Gatekeeper::Gatekeeper(boost::asio::io_context& io, const std::filesystem::path& data_directory,
                       GatekeeperOptions options)
    : io_(io),
      enrolment_(data_directory),
      options_(std::move(options)),
      limits_(options_.rates),
      arrivals_(options_.arrivals),
      rate_(options_.arrivals.per_client, options_.arrivals.per_client_pause),
      writer_(std::make_shared<Writer>(data_directory)),
      watch_(std::make_shared<Watch>(io)) {}

Gatekeeper::~Gatekeeper() = default;

void Gatekeeper::on_admitted(Admitted admitted) { admitted_ = std::move(admitted); }
void Gatekeeper::on_expelled(Expelled expelled) { expelled_ = std::move(expelled); }
void Gatekeeper::on_event(std::function<void(const Event&)> report) { report_ = std::move(report); }

void Gatekeeper::receive(std::shared_ptr<protocol::Link> link) {
  waiting_.insert(link);
  const std::weak_ptr<protocol::Link> weak = link;
  link->set_callbacks({.on_message =
                           [this, weak](const protocol::Message& message) {
                             const auto alive = weak.lock();
                             if (!alive || !waiting_.contains(alive)) return;
                             if (const auto* hello = std::get_if<protocol::Hello>(&message))
                               return greet(alive, *hello);
                             refuse(alive, invalid(std::string("the first message must be hello, not ") +
                                                   protocol::name_of(message)));
                           },
                       .on_closed =
                           [this, weak](const Error&) {
                             const auto alive = weak.lock();
                             if (!alive) return;
                             waiting_.erase(alive);
                             entering_.erase(alive);
                           }});
}

void Gatekeeper::greet(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello) {
  if (hello.min_version > protocol::kProtocolVersion || hello.max_version < protocol::kProtocolVersion)
    return refuse(
        link, {ErrorCode::kUnsupported,
               "this coordinator supports protocol version " + std::to_string(protocol::kProtocolVersion) +
                   ", but the client supports versions " + std::to_string(hello.min_version) + " to " +
                   std::to_string(hello.max_version)});
  if (!options_.is_current(*link)) return dismiss(link, kKeyReplaced);
  if (const auto window = arrivals_.arrive(options_.now())) return send_away(link, *window);
  return hello.token.empty() ? let_in(link, hello) : join(link, hello);
}

void Gatekeeper::join(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello) {
  const JoinAttempt attempt{household_of(*link), to_hex(sha256(hello.token))};
  if (limited(link, attempt)) return;
  const auto known = enrolment_.knows(hello.token);
  if (!known) return refuse(link, known.error());
  if (!*known) return wrong_token(link, attempt);
  // A peer with a token that was valid once does not guess, and its refusal needs no redemption.
  if (const auto spent = enrolment_.spent(hello.token, link->peer(), calendar_now()))
    return refuse(link, *spent);
  waiting_.erase(link);  // its later messages are ignored
  entering_.insert(link);
  joining_.push_back(std::make_shared<const Joining>(
      Joining{link, attempt, hello.token, hello.software, link->peer(), link->peer_address()}));
  if (joining_.size() == 1) begin_next_join();
}

// Refuses an attempt above a limit. Logs only its begin: a flood of attempts must not flood the log.
bool Gatekeeper::limited(const std::shared_ptr<protocol::Link>& link, const JoinAttempt& attempt) {
  const auto objection = limits_.objection(attempt, options_.now());
  if (!objection) return false;
  if (objection->reached != nullptr)
    report_(Event{Severity::kWarning, "enrolment.limited", {}}
                .with("limit", objection->reached)
                .with("address", link->peer_address())
                .with("reason", objection->error.message));
  dismiss(link, objection->error);
  return true;
}

void Gatekeeper::wrong_token(const std::shared_ptr<protocol::Link>& link, const JoinAttempt& attempt) {
  if (limits_.wrong(attempt, options_.now()))
    report_(Event{Severity::kWarning, "client.blocked", {}}
                .with("address", link->peer_address())
                .with("reason",
                      "too many wrong join tokens came from this address; its join attempts are refused "
                      "for a minute"));
  refuse(link, Error{ErrorCode::kRefused, "this coordinator does not know the join token"});
}

// Returns whether the join still needs a redemption; if not, refuses it. Earlier joins may have reached a
// limit or used the token up since it arrived.
bool Gatekeeper::still_open(const Joining& joining) {
  const auto link = joining.link.lock();
  if (!link) return false;
  if (limited(link, joining.attempt)) return false;
  (void)enrolment_.knows(joining.secret);  // reads what the earlier joins changed
  const auto spent = enrolment_.spent(joining.secret, joining.key, calendar_now());
  if (spent) refuse(link, *spent);
  return !spent;
}

// Redeems one token at a time, so that the limits count every earlier join.
void Gatekeeper::begin_next_join() {
  while (!joining_.empty() && !still_open(*joining_.front())) joining_.pop_front();
  if (joining_.empty()) return;
  writer_->worker.post([this, writer = writer_.get(), next = joining_.front(),
                        going_on = std::weak_ptr(writer_), &io = io_,
                        unfinished = std::make_shared<protocol::Unfinished>(io_)] {
    const auto standing = writer->enrolment.redeem(
        {next->secret, next->key, calendar_now(), next->address, next->attempt.address});
    protocol::post(io, [this, next, going_on, standing, unfinished] {
      if (going_on.expired() || joining_.empty() || joining_.front() != next) return;
      joining_.pop_front();
      joined(*next, standing);
      begin_next_join();
    });
  });
}

void Gatekeeper::joined(const Joining& joining, const Result<Standing>& standing) {
  if (standing) enrolment_.learn(joining.key, *standing);
  if (standing && standing->fresh) limits_.enrolled(joining.attempt, options_.now());
  auto link = joining.link.lock();
  if (!standing) {
    if (link) refuse(link, standing.error());
    return;
  }
  // The device would pin a key that is in force no more. It is enrolled all the same, and may join again.
  if (link && !options_.is_current(*link)) {
    dismiss(link, kKeyReplaced);
    link.reset();
  }
  if (link) {
    entering_.erase(link);
    link->authorise();  // frees its place among links before Hello
    welcome(*link, *standing, {}, {});
  }
  placed_(standing->client, standing->project);
  report_(Event{Severity::kInfo, standing->pending ? "client.pending" : "client.enrolled", {}}
              .with("client", std::int64_t{standing->client.value()})
              .with("address", joining.address)
              .with("software", joining.software));
  if (link) link->close("enrolled");
}

void Gatekeeper::recall_joins() {
  const UnixSeconds now = calendar_now();
  const auto recent = enrolment_.enrolled_since(now - std::chrono::seconds(JoinLimits::kLongest).count());
  if (!recent) return report_fault(recent.error().message);
  for (const RecentEnrolment& join : *recent)
    limits_.enrolled({join.household, join.token_hash},
                     options_.now() - std::chrono::seconds(std::max<UnixSeconds>(0, now - join.when)));
}

void Gatekeeper::let_in(const std::shared_ptr<protocol::Link>& link, const protocol::Hello& hello) {
  const auto standing = enrolment_.authenticate(link->peer());
  if (!standing) return refuse(link, standing.error());
  placed_(standing->client, standing->project);
  if (standing->pending) {
    const Error error = pending(standing->client);
    report_(about("client.awaiting_approval", *link, error.message)
                .with("client", std::int64_t{standing->client.value()}));
    return dismiss(link, error);
  }
  if (!rate_.allow(standing->client, options_.now()))
    return refuse(link, {ErrorCode::kResource, "this client connects too often; wait a few seconds"});
  waiting_.erase(link);
  link->authorise();
  std::vector<std::string> features;
  if (understands_contact(hello)) features.emplace_back(protocol::kContactFeature);
  welcome(*link, *standing, std::move(features), options_.runs());
  report_(Event{Severity::kInfo, "client.connected", {}}
              .with("client", std::int64_t{standing->client.value()})
              .with("address", link->peer_address())
              .with("software", hello.software));
  inside_[standing->client] = link;
  admitted_(standing->client, link, hello);
}

void Gatekeeper::welcome(protocol::Link& link, const Standing& standing, std::vector<std::string> features,
                         std::vector<RunId> runs) {
  const auto enrolled = enrolment_.count();
  link.send(protocol::Welcome{.version = protocol::kProtocolVersion,
                              .features = std::move(features),
                              .software = options_.software,
                              .client = standing.client,
                              .pending = standing.pending,
                              .runs = std::move(runs),
                              .spread = arrivals_.spread(enrolled ? *enrolled : 0)});
}

Result<ClientId> Gatekeeper::check(const protocol::Link& link) {
  FEDGE_TRY(standing, enrolment_.authenticate(link.peer()));
  return standing.pending ? Result<ClientId>(pending(standing.client)) : standing.client;
}

void Gatekeeper::refuse(const std::shared_ptr<protocol::Link>& link, const Error& error) {
  if (const auto peer = protocol::parse_address(link->peer_address())) refused(*peer, error);
  dismiss(link, hidden(error));
}

void Gatekeeper::refused(const protocol::Address& peer, const Error& why) {
  if (const auto event = refusals_.note(protocol::household(peer.host), protocol::to_string(peer),
                                        why.message, options_.now()))
    report_(*event);
}

void Gatekeeper::dismiss(const std::shared_ptr<protocol::Link>& link, const Error& error) {
  waiting_.erase(link);
  entering_.erase(link);
  link->send(protocol::Goodbye{error.code, error.message});
  link->close(error.message);
}

void Gatekeeper::watch() {
  recall_joins();
  look_again();
}

void Gatekeeper::look_again() {
  if (!watch_) return;
  std::erase_if(inside_, [](const auto& entry) { return entry.second.expired(); });
  const auto changes = enrolment_.refresh();
  // If the book cannot be read, the last version read stays in force and no client is expelled.
  report_fault(changes ? "" : changes.error().message);
  if (changes) take_changes(changes->clients);
  if (changes && changes->all)
    for (const auto& [client, link] : std::map(inside_)) look_at(client);
  else if (changes)
    for (const ClientRecord& changed : changes->clients) look_at(changed.client);
  watch_->timer.after(kGateLook, protocol::weakly(watch_, [this] { look_again(); }));
}

void Gatekeeper::take_changes(const std::vector<ClientRecord>& changed) {
  for (const ClientRecord& client : changed) {
    placed_(client.client, client.description.project);
    if (client.state != ClientState::kRevoked)
      revoked_clients_.erase(client.client);
    else if (revoked_clients_.insert(client.client).second)
      revoked_(client.client);
  }
}

void Gatekeeper::report_fault(const std::string& fault) {
  if (std::exchange(fault_, fault) == fault) return;
  report_(fault.empty() ? Event{Severity::kInfo, "enrolment.available", {}}
                        : Event{Severity::kError, "enrolment.unavailable", {}}.with("reason", fault));
}

std::optional<std::vector<std::string>> Gatekeeper::labels_of(const protocol::Link& link) const {
  return enrolment_.labels_of(link.peer());
}

std::string Gatekeeper::project_of(const protocol::Link& link) {
  const auto standing = enrolment_.authenticate(link.peer());
  return standing ? standing->project : std::string();
}

void Gatekeeper::look_at(ClientId client) {
  expel(client);
  if (inside_.contains(client)) changed_(client);
}

void Gatekeeper::expel(ClientId client) {
  const auto inside = inside_.find(client);
  const auto link = inside == inside_.end() ? nullptr : inside->second.lock();
  if (!link) return;
  const auto known = check(*link);
  if (known || known.error().code == ErrorCode::kUnavailable) return;
  inside_.erase(client);
  // Called before the link closes, because a closed link alone counts as a lost connection.
  if (expelled_) expelled_(client, *link, known.error());
  refuse(link, known.error());
}

bool Gatekeeper::is_welcome(const std::shared_ptr<protocol::Link>& link) {
  if (check(*link)) return true;
  const auto inside =
      std::ranges::find_if(inside_, [&](const auto& entry) { return entry.second.lock() == link; });
  if (inside != inside_.end()) expel(inside->first);
  return false;
}

void Gatekeeper::send_away(const std::shared_ptr<protocol::Link>& link, Duration window) {
  waiting_.erase(link);
  report_(Event{Severity::kDebug, "client.deferred", {}}
              .with("address", link->peer_address())
              .with("window_seconds", to_seconds(window)));
  link->send(protocol::Goodbye{ErrorCode::kUnavailable,
                               "too many clients connect at once; connect again later", window});
  link->close("too many clients connect at once");
}

void Gatekeeper::close(const std::string& reason) {
  watch_.reset();
  joining_.clear();
  waiting_.merge(entering_);
  writer_->worker.stop();
  const Duration window = arrivals_.window(waiting_.size());
  for (const auto& link : std::exchange(waiting_, {})) {
    link->send(protocol::Goodbye{ErrorCode::kUnavailable, reason, window});
    link->close(reason);
  }
}

}  // namespace fedge::server

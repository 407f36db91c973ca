// A random script: what happens to a run, operation by operation, in both shells. Clients are puppets: they
// answer as the script says, and remember only the task that they were sent last.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/rng.h"
#include "privacy/secure_aggregation/client.h"
#include "run/secure_update.h"
#include "server/access/message_allowance.h"
#include "tests/property/sim/shells/daemon_shell.h"
#include "tests/property/sim/shells/simulator_shell.h"

namespace fedge::server::shells {

class Script {
 public:
  Script(const Scene& scene, const std::filesystem::path& directory, std::uint64_t seed)
      : scene_(scene), daemon_(scene, directory), simulator_(scene), draws_(Rng(seed).fork("script")) {}

  // Plays until the run is over, or this many operations; returns the first difference, or nothing.
  std::string play(std::size_t operations) {
    std::string found = difference(daemon_.seen, simulator_.seen);
    for (std::size_t i = 0; i < operations && found.empty() && !daemon_.seen.over; ++i) {
      log.push_back(step());
      found = difference(daemon_.seen, simulator_.seen);
    }
    return found;
  }
  std::vector<std::string> log;
  const Observed& seen() const { return daemon_.seen; }

 private:
  struct Puppet {
    bool here = false;
    bool described = false;  // it has not answered the run's description yet
    std::size_t heard = 0;   // messages that it has looked at
    std::optional<protocol::TrainRequest> task;
    std::shared_ptr<protocol::StoredObject> offered;
    Delivery delivery;  // of the offered update
    // In a run with secure aggregation: its part in the session, and what it has yet to say.
    std::optional<privacy::SecureClient> session;
    std::deque<protocol::Message> outbox;
  };

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(draws_.below(bound)); }
  bool one_in(std::size_t number) { return below(number) == 0; }

  std::string step() {
    if (one_in(stopped_ ? 4 : 30)) return restart();
    if (one_in(100)) return stop();
    if (one_in(20)) return wait();
    for (std::size_t tries = 0; tries < 8; ++tries) {
      const ClientId client(static_cast<std::uint32_t>(below(scene_.config.task.data.partition.clients)));
      if (const std::string what = step(client); !what.empty())
        return what + " " + std::to_string(client.value());
    }
    return wait();
  }
  // Returns what the client does; empty if it has nothing to do.
  std::string step(ClientId client) {
    Puppet& puppet = puppets_[client];
    if (!puppet.here) return one_in(3) ? std::string() : (link(client), "link");
    if (one_in(20)) return leave(client, one_in(5)), "leave";
    if (puppet.described) return answer(client), "answer";
    if (!puppet.outbox.empty() && !one_in(8)) return say(client);
    if (puppet.offered && !one_in(6)) return deliver(client);
    if (puppet.task && one_in(12)) return fail(client);
    if (puppet.task && (!secure() || (puppet.session && puppet.session->ready()))) return offer(client);
    return {};
  }

  template <class Do>
  void both(Do does) {
    does(daemon_);
    does(simulator_);
    for (auto& [client, puppet] : puppets_) hear(client, puppet);
  }
  // Looks at the messages that came since.
  void hear(ClientId client, Puppet& puppet) {
    const auto& sent = daemon_.seen.sent[client];
    for (; puppet.heard < sent.size(); ++puppet.heard) {
      const protocol::Message& message = sent[puppet.heard];
      if (std::holds_alternative<protocol::RunDescription>(message)) puppet.described = true;
      if (const auto* request = std::get_if<protocol::TrainRequest>(&message)) {
        puppet.task = *request;
        puppet.offered.reset();
        for (int i = 0; i < (secure() ? 3 : 1); ++i) allowance_.asked(client);
        if (secure()) join_session(client, puppet);
      }
      if (puppet.session) hear_session(puppet, message);
      const auto* cancel = std::get_if<protocol::CancelTask>(&message);
      const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message);
      const bool ends = (cancel != nullptr && puppet.task && cancel->task() == puppet.task->task()) ||
                        (verdict != nullptr && puppet.task && verdict->task() == puppet.task->task());
      if (ends && !one_in(10)) puppet.task.reset();
    }
  }
  void tell(ClientId client, const protocol::Message& message) {
    if (!allowance_.answer(client)) return;
    both([&](auto& shell) { shell.receive(client, message); });
  }

  std::string stop() {
    stopped_ = true;
    both([](auto& shell) { shell.stop("enough"); });
    return "stop";
  }
  bool secure() const { return scene_.config.secure.on; }
  void join_session(ClientId client, Puppet& puppet) {
    const protocol::TrainRequest& task = *puppet.task;
    puppet.outbox.clear();
    puppet.session.emplace(
        privacy::MemberTerms{.session = {task.run, task.round, task.track, task.secure_attempt},
                             .self = client,
                             .model = task.model.id(),
                             .terms = sha256(scene_.config.task_text),
                             .parameters = task.model.coverage.count(),
                             .trained = task.coverage,
                             .rules = scene_.config.secure.masking.rules,
                             .fast_aes = has_fast_aes(),
                             .check_pinned_key = {}},
        node_key(client), system_entropy());
    std::vector<privacy::SecureClient::Effect> effects;
    puppet.session->start(effects);
    keep(puppet, effects);
  }
  void hear_session(Puppet& puppet, const protocol::Message& message) {
    std::vector<privacy::SecureClient::Effect> effects;
    std::visit(
        [&](const auto& specific) {
          if constexpr (requires { puppet.session->receive(specific, effects); })
            puppet.session->receive(specific, effects);
        },
        message);
    keep(puppet, effects);
  }
  static void keep(Puppet& puppet, const std::vector<privacy::SecureClient::Effect>& effects) {
    for (const auto& effect : effects)
      if (const auto* send = std::get_if<privacy::SecureClient::Send>(&effect))
        puppet.outbox.push_back(
            std::visit([](const auto& specific) { return protocol::Message(specific); }, send->message));
  }
  std::string say(ClientId client) {
    Puppet& puppet = puppets_[client];
    const protocol::Message message = puppet.outbox.front();
    if (!one_in(10)) puppet.outbox.pop_front();
    tell(client, message);
    return std::string(protocol::name_of(message));
  }

  void link(ClientId client) {
    Puppet& puppet = puppets_[client];
    puppet.here = true;
    if (puppet.session && one_in(4)) puppet.session.reset();  // it was without power
    std::vector<privacy::SecureClient::Effect> again;
    if (puppet.session) puppet.session->repeat(again);
    keep(puppet, again);
    allowance_.connected(client);
    both([&](auto& shell) { shell.link(client); });
  }
  void leave(ClientId client, bool for_good) {
    Puppet& puppet = puppets_[client];
    puppet.here = puppet.described = false;
    if (one_in(2)) puppet.task.reset();
    both([&](auto& shell) { shell.leave(client, for_good); });
  }
  void answer(ClientId client) {
    Puppet& puppet = puppets_[client];
    puppet.described = false;
    const bool ready = !one_in(8);
    tell(client, protocol::RunAnswer{.run = scene_.config.id,
                                     .ready = ready,
                                     .samples = SampleCount(1 + below(12)),
                                     .reason = ready ? "" : "the data is not here"});
  }
  // The values of an update, some of which cannot be used.
  std::vector<float> values(std::size_t number) {
    std::vector<float> drawn(number);
    Rng rng(draws_.below(1U << 31U));
    for (float& value : drawn) value = static_cast<float>(rng.uniform() - 0.5) / 8;
    if (one_in(12)) drawn[below(number)] = std::numeric_limits<float>::quiet_NaN();
    return drawn;
  }
  std::string offer(ClientId client) {
    Puppet& puppet = puppets_[client];
    const protocol::TrainRequest& task = *puppet.task;
    if (secure()) return offer_masked(client, puppet);
    protocol::Manifest shape = task.model;
    shape.coverage = task.coverage;
    auto object = run::store_values(values(shape.coverage.count()), shape, *puppet_store_);
    REQUIRE(object);
    puppet.offered = *object;
    puppet.delivery = {.coverage = task.coverage, .values = std::make_shared<run::StoredValues>(*object)};
    protocol::UpdateOffer offer{.run = task.run,
                                .round = task.round,
                                .update = (*object)->manifest(),
                                .samples = SampleCount(1 + below(7)),
                                .steps = 1 + below(3),
                                .train_loss = draws_.uniform(),
                                .norm = draws_.uniform(),
                                .loss_rms = draws_.uniform(),
                                .track = task.track};
    if (one_in(10)) offer.round = RoundNumber(one_in(2) ? task.round.value() + 1 : task.round.value() - 1);
    if (one_in(15)) offer.update.layout = Digest{3};
    tell(client, offer);
    return "offer";
  }
  std::string offer_masked(ClientId client, Puppet& puppet) {
    const protocol::TrainRequest& task = *puppet.task;
    Sequential here;
    const std::vector<float> drawn = values(task.coverage.count());
    auto plain = run::store_values(drawn, task.model, *puppet_store_);
    REQUIRE(plain);
    puppet.delivery = {.coverage = task.coverage,
                       .samples = SampleCount(1 + below(7)),
                       .loss = draws_.uniform(),
                       .values = std::make_shared<run::StoredValues>(*plain),
                       .masking = std::make_shared<privacy::Masking>(puppet.session->masking())};
    auto masked = run::mask_update({.coverage = &task.coverage,
                                    .values = drawn,
                                    .samples = puppet.delivery.samples,
                                    .loss = puppet.delivery.loss},
                                   scene_.config.secure.masking, puppet.session->masking(), here);
    REQUIRE(masked);
    const protocol::EncodedPayload payload{
        .bytes = masked->words, .codec = scene_.config.secure.masking.codec, .raw_size = 0, .levels = 0};
    protocol::UpdateOffer offer{.run = task.run,
                                .round = task.round,
                                .update = protocol::make_manifest(task.model.layout, masked->coverage,
                                                                  payload, task.model.chunk_size),
                                .samples = SampleCount(1),
                                .steps = 1,
                                .track = task.track,
                                .masked_scalars = masked->scalars};
    auto object = puppet_store_->create(offer.update);
    REQUIRE(object);
    for (std::size_t i = 0; i < offer.update.chunk_count(); ++i)
      REQUIRE((*object)->write(
          i, std::span(masked->words).subspan(i * offer.update.chunk_size, offer.update.chunk_length(i))));
    puppet.offered = *object;
    puppet.session->masked();
    tell(client, offer);
    return "offer";
  }
  std::string deliver(ClientId client) {
    const auto object = puppets_[client].offered;
    const bool sound = !one_in(8);
    const auto fault =
        sound ? std::nullopt : std::optional(Error{ErrorCode::kCorrupt, "a chunk does not match its hash"});
    if (!sound || !one_in(6)) puppets_[client].offered.reset();
    daemon_.deliver(client, *object, fault);
    simulator_.deliver(client, object->manifest(), puppets_[client].delivery, fault);
    both([](auto&) {});
    return sound ? "deliver" : "damage";
  }
  std::string fail(ClientId client) {
    const protocol::TrainRequest task = *puppets_[client].task;
    tell(client,
         protocol::TaskFailed{.run = task.run, .round = task.round, .reason = "no", .track = task.track});
    return "fail";
  }
  // Time passes: a moment, or up to a deadline, or just before or after it.
  std::string wait() {
    Duration time = seconds(static_cast<double>(below(20)) / 4);
    if (const auto deadline = daemon_.deadline(); deadline && *deadline > daemon_.now() && one_in(2)) {
      const Duration whole = *deadline - daemon_.now();
      const std::array<Duration, 5> times = {whole, whole - Duration(1), whole + Duration(1), whole / 2,
                                             whole / 4 * 3};
      time = times[below(times.size())];
    }
    both([&](auto& shell) { shell.pass(time); });
    return "wait " + std::to_string(to_seconds(time));
  }
  std::string restart() {
    // Two of three restarts are crashes.
    const std::size_t all = daemon_.written().journal.size();
    const std::size_t promised = daemon_.promised();
    const std::size_t entries = one_in(3) ? all : one_in(2) ? promised : promised + below(all - promised + 1);
    const Time then = daemon_.restart({entries, one_in(2), one_in(3)});
    simulator_.restart(then, daemon_.before_restart(), daemon_.rounds_before_restart());
    for (auto& [client, puppet] : puppets_) {
      puppet.here = puppet.described = false;
      hear(client, puppet);
    }
    allowance_ = MessageAllowance(Duration::zero());
    return "restart with " + std::to_string(entries) + " of " + std::to_string(all);
  }

  const Scene& scene_;
  DaemonShell daemon_;
  SimulatorShell simulator_;
  Rng draws_;
  std::map<ClientId, Puppet> puppets_;
  bool stopped_ = false;
  MessageAllowance allowance_{Duration::zero()};
  std::unique_ptr<protocol::ChunkStore> puppet_store_ =
      protocol::make_memory_chunk_store(std::size_t{1} << 28);
};

}  // namespace fedge::server::shells

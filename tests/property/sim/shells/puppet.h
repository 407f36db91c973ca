// A client that does what a script says. It remembers only the task that it was sent last and its part in a
// session of secure aggregation, or in a serverless round.
#pragma once

#include <doctest/doctest.h>

#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/crypto/entropy.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "privacy/secure_aggregation/client.h"
#include "protocol/codecs/payload_codec.h"
#include "run/secure_update.h"
#include "run/stored_update.h"
#include "tests/property/sim/shells/arrived_updates.h"
#include "tests/property/sim/shells/scene.h"
#include "tests/property/sim/shells/serverless_part.h"

namespace fedge::server::shells {

class Puppet {
 public:
  Puppet(const Scene& scene, ClientId self, Rng draws)
      : scene_(scene), self_(self), draws_(std::move(draws)), part_(scene, draws_.fork("serverless")) {}

  bool here = false;
  bool fresh_link = false;  // the coordinator has got no chunk over it
  bool described = false;   // it has not answered the run's description yet
  std::optional<protocol::TrainRequest> task;
  std::shared_ptr<protocol::StoredObject> offered;
  Delivery delivery;                     // of the offered update
  std::deque<protocol::Message> outbox;  // session messages that it has yet to send

  ServerlessPart& part() { return part_; }
  void connect() {
    here = fresh_link = true;
    if (session_ && one_in(4)) session_.reset();  // it was without power
    std::vector<Session::Effect> again;
    if (session_) session_->repeat(again);
    keep(again);
  }
  void hear(const protocol::Message& message) {
    if (std::holds_alternative<protocol::RunDescription>(message)) described = true;
    if (const auto* request = std::get_if<protocol::TrainRequest>(&message)) {
      task = *request;
      offered.reset();
      if (scene_.config.secure.on) join_session();
    }
    if (session_) hear_session(message);
    part_.hear(message);
    const auto* cancel = std::get_if<protocol::CancelTask>(&message);
    const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message);
    const bool ends = (cancel != nullptr && task && cancel->task() == task->task()) ||
                      (verdict != nullptr && task && verdict->task() == task->task());
    if (ends && !one_in(10)) task.reset();
  }
  bool can_offer() const { return task && (!scene_.config.secure.on || (session_ && session_->ready())); }
  // Makes an update and returns its offer. Unless it must be `sound`, it cannot always be used.
  protocol::UpdateOffer offer(bool sound) {
    if (scene_.config.secure.on) return offer_masked();
    protocol::UpdateOffer offer = offer_plain(sound);
    if (sound) return offer;
    if (one_in(10)) offer.round = RoundNumber(one_in(2) ? task->round.value() + 1 : task->round.value() - 1);
    if (one_in(15)) offer.update.layout = Digest{3};
    return offer;
  }

 private:
  using Session = privacy::SecureClient;

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(draws_.below(bound)); }
  bool one_in(std::size_t number) { return below(number) == 0; }

  void join_session() {
    outbox.clear();
    session_.emplace(
        privacy::MemberTerms{.session = {task->run, task->round, task->track, task->secure_attempt},
                             .self = self_,
                             .model = task->model.id(),
                             .terms = sha256(scene_.config.task_text),
                             .parameters = task->model.coverage.count(),
                             .trained = task->coverage,
                             .rules = scene_.config.secure.masking.rules,
                             .fast_aes = has_fast_aes(),
                             .check_pinned_key = {}},
        node_key(self_), system_entropy());
    std::vector<Session::Effect> effects;
    session_->start(effects);
    keep(effects);
  }
  void hear_session(const protocol::Message& message) {
    std::vector<Session::Effect> effects;
    std::visit(
        [&](const auto& specific) {
          if constexpr (requires { session_->receive(specific, effects); })
            session_->receive(specific, effects);
        },
        message);
    keep(effects);
  }
  void keep(const std::vector<Session::Effect>& effects) {
    for (const auto& effect : effects)
      if (const auto* send = std::get_if<Session::Send>(&effect))
        outbox.push_back(
            std::visit([](const auto& specific) { return protocol::Message(specific); }, send->message));
  }
  std::vector<float> values(std::size_t number) {
    std::vector<float> drawn(number);
    for (float& value : drawn) value = static_cast<float>(draws_.uniform() - 0.5) / 8;
    if (one_in(12)) drawn[below(number)] = std::numeric_limits<float>::quiet_NaN();
    return drawn;
  }
  std::shared_ptr<protocol::StoredObject> plain_update() {
    protocol::Manifest shape = task->model;
    shape.coverage = task->coverage;
    auto object = run::store_values(values(shape.coverage.count()), shape, *store_);
    REQUIRE(object);
    return *object;
  }
  protocol::UpdateOffer offer_plain(bool sound) {
    offered = scene_.config.dissemination.serverless ? part_.update_for(*task) : plain_update();
    delivery = {.coverage = task->coverage, .values = std::make_shared<run::StoredValues>(offered)};
    protocol::UpdateOffer offer{.run = task->run,
                                .round = task->round,
                                .update = offered->manifest(),
                                .samples = SampleCount(1 + below(7)),
                                .steps = sound || !one_in(6) ? 1U : 2U,
                                .train_loss = draws_.uniform(),
                                .norm = draws_.uniform(),
                                .loss_rms = draws_.uniform(),
                                .track = task->track};
    return offer;
  }
  protocol::UpdateOffer offer_masked() {
    Sequential here_only;
    const std::vector<float> drawn = values(task->coverage.count());
    auto plain = run::store_values(drawn, task->model, *store_);
    REQUIRE(plain);
    delivery = {.coverage = task->coverage,
                .samples = SampleCount(1 + below(7)),
                .loss = draws_.uniform(),
                .values = std::make_shared<run::StoredValues>(*plain),
                .masking = std::make_shared<privacy::Masking>(session_->masking())};
    const privacy::MaskingSpec& spec = scene_.config.secure.masking;
    auto masked = run::mask_update(
        {.coverage = &task->coverage, .values = drawn, .samples = delivery.samples, .loss = delivery.loss},
        spec, *delivery.masking, here_only);
    REQUIRE(masked);
    const protocol::EncodedPayload payload{
        .bytes = masked->words, .codec = spec.codec, .raw_size = 0, .levels = 0};
    protocol::UpdateOffer offer{.run = task->run,
                                .round = task->round,
                                .update = protocol::make_manifest(task->model.layout, masked->coverage,
                                                                  payload, task->model.chunk_size),
                                .samples = SampleCount(1),
                                .steps = 1,
                                .track = task->track,
                                .masked_scalars = masked->scalars};
    auto object = store_->create(offer.update);
    REQUIRE(object);
    const std::span<const std::byte> words = masked->words;
    for (std::size_t i = 0; i < offer.update.chunk_count(); ++i)
      REQUIRE((*object)->write(i, words.subspan(i * offer.update.chunk_size, offer.update.chunk_length(i))));
    offered = *object;
    session_->masked();
    return offer;
  }

  const Scene& scene_;
  ClientId self_;
  Rng draws_;
  ServerlessPart part_;
  std::optional<Session> session_;
  std::unique_ptr<protocol::ChunkStore> store_ = protocol::make_memory_chunk_store(std::size_t{1} << 26);
};

}  // namespace fedge::server::shells

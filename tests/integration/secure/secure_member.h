// A peer of a federation that takes part in its secure sums. It follows the protocol as far as the test says;
// its update is zero.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/crypto/entropy.h"
#include "privacy/secure_aggregation/client.h"
#include "run/secure_update.h"
#include "tests/integration/hostile_peer.h"

namespace fedge::test {

// The last step of the member; it disconnects when the next one is requested.
enum class LastWord { kNothing, kKeys, kShares, kUpdate, kConsent, kAll };

class SecureMember {
 public:
  SecureMember(Federation& federation, LastWord last)
      : peer(federation), federation_(federation), last_(last) {
    peer.hear = [this](const protocol::Message& message) { heard(message); };
    peer.join(federation.token());
    REQUIRE(*peer.answer);
  }

  // Observes, changes, or drops (by returning false) its messages.
  std::function<bool(protocol::Message&)> says = [](protocol::Message&) { return true; };
  // Observes or changes the masked words that it offers.
  std::function<void(std::vector<std::byte>&)> offers = [](std::vector<std::byte>&) {};
  std::optional<Error> stopped;
  bool gone = false;
  HostilePeer peer;

 private:
  using Session = privacy::SecureClient;

  struct Words final : protocol::ChunkSource {
    Words(std::vector<std::byte> all, std::size_t chunk) : bytes(std::move(all)), chunk_size(chunk) {}
    Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
      std::memcpy(out.data(), bytes.data() + chunk * chunk_size + from, out.size());
      return {};
    }
    std::vector<std::byte> bytes;
    std::size_t chunk_size;
  };

  void heard(const protocol::Message& message) {
    if (gone) return;
    std::vector<Session::Effect> effects;
    if (const auto* task = std::get_if<protocol::TrainRequest>(&message)) begin(*task, effects);
    if (!session_) return;
    if (const auto* roster = std::get_if<protocol::SecureRoster>(&message))
      session_->receive(*roster, effects);
    if (const auto* shares = std::get_if<protocol::SecurePeerShares>(&message))
      session_->receive(*shares, effects);
    if (const auto* survivors = std::get_if<protocol::SecureSurvivors>(&message))
      session_->receive(*survivors, effects);
    if (const auto* consents = std::get_if<protocol::SecureConsents>(&message))
      session_->receive(*consents, effects);
    carry_out(effects);
  }

  void begin(const protocol::TrainRequest& task, std::vector<Session::Effect>& effects) {
    const auto& answer = *peer.answer;
    session_.emplace(privacy::MemberTerms{.session = {task.run, task.round, task.track, task.secure_attempt},
                                          .self = answer->client,
                                          .model = task.model.id(),
                                          .terms = sha256(federation_.run.task_text),
                                          .parameters = task.model.coverage.count(),
                                          .trained = task.coverage,
                                          .rules = federation_.run.secure.masking.rules,
                                          .fast_aes = has_fast_aes(),
                                          .check_pinned_key = {}},
                     peer.key(), system_entropy());
    if (last_ == LastWord::kNothing) return leave();
    session_->start(effects);
  }

  void carry_out(const std::vector<Session::Effect>& effects) {
    constexpr LastWord kWords[] = {LastWord::kKeys, LastWord::kShares, LastWord::kConsent, LastWord::kAll};
    for (const auto& effect : effects) {
      if (const auto* error = std::get_if<Session::Stopped>(&effect)) stopped = error->error;
      if (std::holds_alternative<Session::Ready>(effect)) last_ < LastWord::kUpdate ? leave() : offer();
      const auto* send = std::get_if<Session::Send>(&effect);
      if (send == nullptr || gone) continue;
      protocol::Message message =
          std::visit([](const auto& specific) { return protocol::Message(specific); }, send->message);
      const LastWord word = kWords[send->message.index()];
      if (last_ < word) return leave();
      if (says(message)) peer.link->send(message);
    }
  }

  void offer() {
    const auto masking = session_->masking();
    const std::vector<float> zeros(peer.task->coverage.count());
    Sequential here;
    auto masked = run::mask_update(
        {.coverage = &peer.task->coverage, .values = zeros, .samples = SampleCount(4), .loss = 1},
        federation_.run.secure.masking, masking, here);
    REQUIRE(masked);
    offers(masked->words);
    protocol::EncodedPayload payload{
        .bytes = masked->words, .codec = federation_.run.secure.masking.codec, .raw_size = 0, .levels = 0};
    protocol::UpdateOffer offered{.run = peer.task->run,
                                  .round = peer.task->round,
                                  .update = protocol::make_manifest(peer.task->model.layout, masked->coverage,
                                                                    payload, peer.task->model.chunk_size),
                                  .samples = SampleCount(1),
                                  .steps = 1,
                                  .track = peer.task->track,
                                  .masked_scalars = masked->scalars};
    peer.link->serve(offered.update, std::make_shared<Words>(masked->words, offered.update.chunk_size));
    session_->masked();
    peer.link->send(offered);
  }

  void leave() {
    gone = true;
    peer.link->close("the test says so");
  }

  Federation& federation_;
  LastWord last_;
  std::optional<Session> session_;
};

// Returns the model's hash after a round without masks in which this many honest clients deliver, and one
// more delivers zeros or nothing.
inline std::string hash_without_secrets(std::size_t honest, bool zeros) {
  Federation f(honest + 1,
               {"run.rounds=1", zeros ? "run.seed=5" : "run.wait_for_clients=" + std::to_string(honest)});
  for (std::size_t i = 0; i < honest; ++i) f.add_client();
  std::optional<HostilePeer> peer;
  if (zeros) {
    peer.emplace(f);
    peer->join(f.token());
    peer->wait_for_task(1);
    const auto update = peer->zero_update();
    peer->send_update(peer->offer(update), update);
  }
  f.run_to_the_end();
  return f.hashes()[0];
}

}  // namespace fedge::test

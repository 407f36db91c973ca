// Serverless runs: the conditions for a model or an update to count, against lying clients.
#include <doctest/doctest.h>

#include "tests/integration/swarm/serverless_scene.h"

using namespace fedge;
using test::answer_all;
using test::Federation;
using test::HostilePeer;
using test::serverless;
using test::ServerlessScene;

namespace {

void claim_model(HostilePeer& peer, const std::shared_ptr<ParameterVector>& values) {
  const protocol::Manifest model = test::claim_model(peer, values);
  peer.hear = [&peer, model](const protocol::Message& message) { test::show_model(peer, model, message); };
}

// Returns the id of the final model as in the coordinator's manifest.
protocol::ObjectId final_model(const Federation& f, const protocol::TrainRequest& task) {
  const auto& values = (*f.final_models)->front().values;
  return protocol::make_manifest(task.model.layout, task.model.coverage, values.bytes(),
                                 task.model.chunk_size)
      .id();
}

}  // namespace

TEST_CASE("serverless, A2: one of two clients does not make the model, and the other one is not accused") {
  ServerlessScene scene({}, 1);
  scene.offer(scene.values_of(0.25F));
  scene.f.run_until([&] { return scene.hostile.shared.size() == 2; });
  answer_all(scene.hostile);
  scene.f.run_until([&] { return scene.hostile.order.has_value(); });
  claim_model(scene.hostile, scene.values_of(1.0F));
  scene.f.run_to_the_end();
  CHECK(scene.f.reported(
      "round.not_aggregated round=1 reason=\"no model was aggregated by more than half of the 2 clients of "
      "the round; the largest group that aggregated the same model has 1 clients\""));
  CHECK_FALSE(scene.f.reported("model.mismatch"));
  CHECK(final_model(scene.f, *scene.hostile.task) == scene.hostile.task->model.id());
}

TEST_CASE("serverless, A2: half of the clients that call an update unsound are no veto") {
  ServerlessScene scene({}, 1);
  scene.offer(scene.values_of(0.25F));
  scene.f.run_until([&] { return scene.hostile.shared.size() == 2; });
  answer_all(scene.hostile, false);
  scene.f.run_until([&] { return scene.hostile.order.has_value(); });
  CHECK(scene.hostile.order->parts.size() == 2);
  CHECK_FALSE(scene.f.reported("update.refused"));
}

TEST_CASE(
    "serverless: after a restart those who had no part in making the model have none again, and it is that "
    "of "
    "the others") {
  Federation f(4, serverless({"run.rounds=1"}));
  std::vector<std::unique_ptr<HostilePeer>> peers;
  for (std::size_t i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<HostilePeer>(f));
    peers.back()->join(f.token());
  }
  for (const auto& peer : peers) peer->wait_for_task(1);
  const auto task = *peers[0]->task;
  for (std::size_t i = 2; i < 4; ++i)
    peers[i]->link->send(protocol::TaskFailed{.run = task.run, .round = task.round, .track = task.track});
  f.run_until([&] { return f.count(f.events, "client.dropped") == 2; });
  for (std::size_t i = 0; i < 2; ++i) {
    const auto update = peers[i]->zero_update();
    update->values()[0] = static_cast<float>(1 + i);
    peers[i]->link->send(peers[i]->offer(update));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    f.run_until([&] { return peers[i]->shared.size() == 2; });
    answer_all(*peers[i]);
  }
  f.run_until([&] { return peers[0]->order && peers[1]->order; });
  f.ask(server::RunStatus::kPaused, "the test");
  f.run_until([&] { return f.left.size() == 1; });
  for (std::size_t i = 0; i < 2; ++i) peers[i]->order.reset();
  f.ask(server::RunStatus::kPending, "the test");
  f.run_until([&] { return peers[0]->order && peers[1]->order; });
  const auto made = peers[0]->zero_update();
  std::ranges::fill(made->values(), 1.0F);
  for (std::size_t i = 0; i < 2; ++i) claim_model(*peers[i], made);
  f.run_to_the_end();
  CHECK_FALSE(f.reported("round.not_aggregated"));
  CHECK(final_model(f, task) == peers[0]->offer(made).update.id());
}

TEST_CASE("serverless: after a restart the first client that is back does not decide the model") {
  Federation f(2, serverless({"run.rounds=1"}));
  HostilePeer first(f);
  HostilePeer second(f);
  for (HostilePeer* peer : {&first, &second}) peer->join(f.token());
  for (HostilePeer* peer : {&first, &second}) {
    peer->wait_for_task(1);
    const auto update = peer->zero_update();
    update->values()[0] = peer == &first ? 0.25F : 0.5F;
    peer->link->send(peer->offer(update));
  }
  for (HostilePeer* peer : {&first, &second}) {
    f.run_until([&] { return peer->shared.size() == 2; });
    answer_all(*peer);
  }
  f.run_until([&] { return first.order && second.order; });
  const auto task = *first.task;
  second.link->close("away");
  f.ask(server::RunStatus::kPaused, "the test");
  f.run_until([&] { return f.left.size() == 1; });
  first.order.reset();
  second.order.reset();
  f.ask(server::RunStatus::kPending, "the test");
  f.run_until([&] { return first.order.has_value(); });
  const auto forged = first.zero_update();
  std::ranges::fill(forged->values(), 1.0F);
  claim_model(first, forged);
  second.greet("");
  f.run_until([&] { return second.order.has_value(); });
  claim_model(second, second.zero_update());
  f.run_to_the_end();
  CHECK(f.reported(
      "round.not_aggregated round=1 reason=\"no model was aggregated by more than half of the 2 clients"));
  CHECK(final_model(f, task) == task.model.id());
}

#include "sim/split/virtual_split.h"

#include <algorithm>
#include <utility>

#include "learn/split/cut_codec.h"
#include "learn/split/split_model.h"
#include "protocol/codec.h"
#include "protocol/split_stream.h"

namespace fedge::sim {

using protocol::SplitKind;

void VirtualSplit::begin(ClientId client, const Start& start) {
  auto& training = trainings_[client.value()];
  training = std::make_unique<Training>(
      start, learn::PlannedExchanges(surroundings_.task, client, start.task.round, start.data_share, 0));
  training->number = ++trainings_begun_;
  next_piece(client, *training);
}

VirtualSplit::Training* VirtualSplit::find(ClientId client, std::uint64_t number) {
  const auto& training = trainings_[client.value()];
  return training && training->number == number ? training.get() : nullptr;
}

template <class What>
void VirtualSplit::go_on(ClientId client, const Training& training, Time when, What what) {
  surroundings_.world.at(when, [this, client, number = training.number, what] {
    if (Training* now = find(client, number)) (this->*what)(client, *now);
  });
}

void VirtualSplit::next_piece(ClientId client, Training& training) {
  auto piece = training.plan.next();
  training.ended = !piece;
  if (piece) training.piece = std::move(*piece);
  training.exchange = 0;
  training.answered = false;
  if (training.ended) return send(client, training);
  const Duration forward = time(surroundings_.devices.of(client).samples_per_second(), training,
                                static_cast<double>(training.start.cut), 1);
  go_on(client, training, surroundings_.world.now() + forward, &VirtualSplit::send);
}

void VirtualSplit::send(ClientId client, Training& training) {
  training.waits = true;
  if (!surroundings_.links.online(client)) return;
  if (!training.ended) up_.add(Bytes(values_size(training)));
  surroundings_.links.send_up(client, size_up(training), [this, client, number = training.number] {
    if (Training* now = find(client, number)) serve(client, *now);
  });
}

void VirtualSplit::asked_again(ClientId client, TaskId task) {
  const auto& training = trainings_[client.value()];
  if (training && training->start.task == task && training->waits) send(client, *training);
}

void VirtualSplit::serve(ClientId client, Training& training) {
  const Time now = surroundings_.world.now();
  if (training.answered || training.ended) return answer(client, training);
  const bool kept = surroundings_.task.spec().training.split.keeps_targets;
  const double thirds = !kept ? 3 : training.exchange == 0 ? 1 : 2;
  const auto blocks = static_cast<double>(surroundings_.task.split_layout().blocks() - training.start.cut);
  const Duration takes = surroundings_.samples_per_second > 0
                             ? time(surroundings_.samples_per_second, training, blocks, thirds)
                             : Duration();
  server_free_ = std::max(server_free_, now) + takes;
  training.answered = true;
  go_on(client, training, server_free_, &VirtualSplit::answer);
}

void VirtualSplit::answer(ClientId client, Training& training) {
  if (!surroundings_.links.online(client)) return;
  if (!training.ended) down_.add(Bytes(values_size(training)));
  surroundings_.links.send_down(client, size_down(training), [this, client, number = training.number] {
    if (Training* now = find(client, number)) take_answer(client, *now);
  });
}

void VirtualSplit::take_answer(ClientId client, Training& training) {
  if (!std::exchange(training.waits, false)) return;  // an answer that came twice
  if (training.ended) {
    const auto done = std::move(training.start.done);
    drop(client);
    return done();
  }
  if (surroundings_.task.spec().training.split.keeps_targets && training.exchange == 0) {
    training.exchange = 1;
    training.answered = false;
    return send(client, training);
  }
  const Duration backward = time(surroundings_.devices.of(client).samples_per_second(), training,
                                 static_cast<double>(training.start.cut), 2);
  go_on(client, training, surroundings_.world.now() + backward, &VirtualSplit::next_piece);
}

protocol::SplitValues VirtualSplit::head(const Training& training, SplitKind kind) const {
  return {.run = training.start.run,
          .round = training.start.task.round,
          .kind = kind,
          .step = training.piece.step,
          .first = training.piece.first};
}

std::size_t VirtualSplit::values_size(const Training& training) const {
  const learn::Task& task = surroundings_.task;
  const learn::CutCodec codec(task.spec().training.split.codec, task.model().split()->width());
  return codec.bytes({training.piece.sent, 0});
}

Bytes VirtualSplit::size_up(const Training& training) const {
  if (training.ended)
    return Bytes(protocol::frame_size(
        protocol::SplitEnded{training.start.run, training.start.task.round, training.plan.steps()}));
  const learn::PlannedExchanges::Piece& piece = training.piece;
  const learn::SplitTrainingSpec& spec = surroundings_.task.spec().training.split;
  auto values =
      head(training, training.exchange == 0 ? SplitKind::kActivations : SplitKind::kOutputGradients);
  values.steps = training.plan.steps();
  values.total = static_cast<std::uint32_t>(piece.total);
  values.last = piece.last;
  values.sent = piece.sent;
  if (spec.feedback) values.samples = piece.samples;
  if (!spec.keeps_targets)
    for (const learn::Token token : piece.targets) values.targets.push_back(std::uint32_t{token} + 1);
  return protocol::split_frames_size(values, values_size(training));
}

Bytes VirtualSplit::size_down(const Training& training) const {
  if (training.ended)
    return Bytes(protocol::frame_size(protocol::SplitKept{training.start.run, training.start.task.round}));
  const learn::PlannedExchanges::Piece& piece = training.piece;
  const learn::SplitTrainingSpec& spec = surroundings_.task.spec().training.split;
  const bool gradients = !spec.keeps_targets || training.exchange == 1;
  auto values = head(training, gradients ? SplitKind::kGradients : SplitKind::kOutputs);
  if (!spec.keeps_targets) values.losses.assign(piece.sent.size(), 1.0);
  return protocol::split_frames_size(values, values_size(training));
}

Duration VirtualSplit::time(double samples_per_second, const Training& training, double blocks,
                            double thirds) const {
  const auto all = static_cast<double>(surroundings_.task.split_layout().blocks());
  return seconds(static_cast<double>(training.piece.sent.size()) / samples_per_second * (blocks / all) *
                 (thirds / 3));
}

}  // namespace fedge::sim

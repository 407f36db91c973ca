#include "server/split/split_server.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "core/check.h"
#include "learn/models/adapters.h"

namespace fedge::server {

using protocol::SplitKind;
using protocol::SplitValues;

namespace {

constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 40;

Error begin_again() {
  return {ErrorCode::kStale,
          "the coordinator does not have what this training has changed so far; begin again"};
}

// Distinguishes a message that comes again from another one with the same numbers.
Digest hash_of(const SplitValues& message) {
  Sha256 hash;
  const auto add = [&](const auto& values) { hash.add(std::as_bytes(std::span(values))); };
  const std::uint64_t numbers[] = {message.round.value(), static_cast<std::uint64_t>(message.kind),
                                   message.step,          message.first,
                                   message.steps,         message.total,
                                   message.last ? 1U : 0U};
  add(numbers);
  add(message.sent);
  add(message.targets);
  add(message.samples);
  add(message.values);
  return hash.finish();
}

}  // namespace

SplitServer::SplitServer(const learn::Model& model, const learn::TrainingSpec& training, SplitLayout layout)
    : model_(model), training_(training), layout_(std::move(layout)), half_(model, training) {}

void SplitServer::take_model(ParameterVector parameters) {
  FEDGE_CHECK(parameters.size() == model_.layout()->size(), "a model of this layout");
  parameters_ = std::move(parameters);
  const auto adapters = parameters_.values().subspan(model_.adapters()->offset());
  adapters_.assign(adapters.begin(), adapters.end());
}

void SplitServer::begin(ClientId client, RoundNumber round, std::size_t cut) {
  Training& training = trainings_[client];
  if (training.round != round || training.cut != cut) training = {.round = round, .cut = cut};
}

std::size_t SplitServer::most_bytes() const {
  const learn::SplitModel& split = *model_.split();
  const std::vector<std::uint32_t> sent(split.sequences(training_.batch_size),
                                        static_cast<std::uint32_t>(model_.input_size()));
  return learn::CutCodec(training_.split.codec, split.width()).bytes({sent, model_.input_size()});
}

Result<SplitValues> SplitServer::answer(ClientId client, SplitValues message) {
  const auto found = trainings_.find(client);
  if (found == trainings_.end() || found->second.round != message.round)
    return Error{ErrorCode::kNotFound,
                 "this client has no task of round " + std::to_string(message.round.value())};
  Training& training = found->second;
  const Digest asked = hash_of(message);
  if (training.answer && training.asked == asked) return *training.answer;
  if (message.step == 0 && message.first == 0 && message.kind == SplitKind::kActivations) {
    std::ranges::copy(
        adapters_, parameters_.values().begin() + static_cast<std::ptrdiff_t>(model_.adapters()->offset()));
    training.state = half_.begin({message.round, training.cut, message.steps}, layout_, parameters_.values());
    training.sequences = 0;
    training.open.reset();
  }
  if (!training.state) return begin_again();
  FEDGE_TRY_VOID(check(message, training));
  training.answer.reset();
  auto answer = compute(training, std::move(message));
  if (!answer) {
    // What it has changed is of no use.
    training.state.reset();
    return answer;
  }
  training.asked = asked;
  training.answer = *answer;
  return answer;
}

Result<void> SplitServer::check(const SplitValues& message, const Training& training) const {
  const bool kept = training_.split.keeps_targets;
  const std::size_t context = model_.input_size();
  const auto refuse = [&](const std::string& why) {
    return invalid("values at the cut, step " + std::to_string(message.step) + ": " + why);
  };
  if (message.kind != SplitKind::kActivations && !(kept && message.kind == SplitKind::kOutputGradients))
    return refuse("a client does not send values of this kind");
  if (message.step != training.state->steps) return begin_again();
  if (message.kind == SplitKind::kOutputGradients) {
    if (!training.open || training.open->first != message.first || training.open->sent != message.sent ||
        training.open->last != message.last || training.open->samples != message.samples)
      return refuse("gradients of other sequences than the last activations");
    return {};
  }
  if (training.open) return refuse("activations, before the gradients of the last ones");
  if (message.first != training.sequences)
    return refuse("the sequences from " + std::to_string(message.first) + " on, expected those from " +
                  std::to_string(training.sequences));
  const std::size_t count = message.sent.size();
  if (count > model_.split()->sequences(training_.batch_size) || message.first + count > training_.batch_size)
    return refuse(std::to_string(count) + " sequences, more than a piece or the batch has");
  for (const std::uint32_t tokens : message.sent)
    if (tokens == 0 || tokens > context)
      return refuse("a sequence of " + std::to_string(tokens) + " tokens, expected 1 to " +
                    std::to_string(context));
  if (message.total == 0 || message.total > training_.batch_size * context)
    return refuse("a batch with " + std::to_string(message.total) + " targets");
  if (message.steps != training.state->start.steps || message.steps == 0 || message.steps > kMaxSteps ||
      message.step >= message.steps)
    return refuse("a training of " + std::to_string(message.steps) + " steps");
  if (message.targets.empty() != kept)
    return refuse(kept ? "targets, which should stay on the client" : "no targets");
  for (const std::uint32_t target : message.targets)
    if (target > model_.classes())
      return refuse("the target " + std::to_string(target - 1) + ", but the vocabulary has " +
                    std::to_string(model_.classes()) + " tokens");
  if (message.samples.empty() == training_.split.feedback)
    return refuse("numbers of samples are for error feedback alone, which needs them");
  return {};
}

learn::ExchangedPiece SplitServer::piece_of(const SplitValues& message, const Training& training,
                                            std::span<const learn::Token> targets) const {
  const std::size_t context = model_.input_size();
  return {.step = message.step,
          .last = message.last,
          .place = {.cut = training.cut,
                    .first = message.first * context,
                    .rows = message.sent.size() * context,
                    .length = context},
          .sent = {message.sent, context},
          .targets = targets,
          .total = message.total,
          .samples = message.samples};
}

Result<SplitValues> SplitServer::compute(Training& training, SplitValues message) {
  const std::size_t context = model_.input_size();
  std::vector<learn::Token> targets;
  if (!message.targets.empty()) {
    targets.assign(message.sent.size() * context, learn::kNoToken);
    std::size_t next = 0;
    for (std::size_t s = 0; s < message.sent.size(); ++s)
      for (std::size_t t = 0; t < message.sent[s]; ++t)
        if (const std::uint32_t target = message.targets[next++]; target > 0)
          targets[s * context + t] = static_cast<learn::Token>(target - 1);
  }
  SplitValues answer{
      .run = message.run, .round = message.round, .step = message.step, .first = message.first};
  const learn::ExchangedPiece piece = piece_of(message, training, targets);
  half_.enter(*training.state, parameters_.values(), nullptr);
  Result<void> done;
  if (!training_.split.keeps_targets) {
    answer.kind = SplitKind::kGradients;
    answer.losses.resize(message.sent.size());
    done = half_.exchange(piece, message.values, answer.losses);
    for (const double loss : answer.losses)
      if (done && !std::isfinite(loss))
        done = invalid("the training loss is not finite; lower training.optimizer.learning_rate");
  } else if (message.kind == SplitKind::kActivations) {
    answer.kind = SplitKind::kOutputs;
    std::vector<std::byte> values = message.values;
    done = half_.forward(piece, values);
    if (done) training.open = std::exchange(message, {});
    message.values = std::move(values);
  } else {
    answer.kind = SplitKind::kGradients;
    // Others may have used the scratch meanwhile.
    const SplitValues activations = *std::exchange(training.open, std::nullopt);
    std::vector<std::byte> again = activations.values;
    done = half_.forward(piece_of(activations, training, {}), again);
    if (done) done = half_.backward(piece, message.values);
  }
  half_.leave(*training.state);
  if (!done) return done.error();
  if (!training.open)
    training.sequences =
        piece.last ? 0 : static_cast<std::uint32_t>(piece.place.first / context + piece.sent.of.size());
  answer.values = std::move(message.values);
  return answer;
}

Result<std::vector<float>> SplitServer::end(ClientId client, RoundNumber round, std::uint64_t steps) {
  const auto found = trainings_.find(client);
  if (found == trainings_.end() || found->second.round != round)
    return Error{ErrorCode::kNotFound, "this client has no task of round " + std::to_string(round.value())};
  const Training& training = found->second;
  if (!training.state) return begin_again();
  const learn::SplitState& state = *training.state;
  if (state.steps != steps || training.sequences > 0 || training.open)
    return invalid("the training ends after " + std::to_string(steps) + " steps, but has " +
                   std::to_string(state.steps));
  const std::size_t offset = model_.adapters()->offset();
  std::vector<float> now(adapters_.size());
  const float* value = state.values.data();
  for (const Range& range : state.held.ranges()) {
    std::copy_n(value, range.size(), now.data() + (range.begin - offset));
    value += range.size();
  }
  std::vector<float> changed;
  changed.reserve(state.trained.count());
  for (const Range& range : state.trained.ranges())
    for (std::size_t i = range.begin - offset; i < range.end - offset; ++i)
      changed.push_back(now[i] - adapters_[i]);
  for (const float difference : changed)
    if (!std::isfinite(difference))
      return invalid("the training has diverged; lower training.optimizer.learning_rate");
  return changed;
}

}  // namespace fedge::server

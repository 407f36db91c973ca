#include "client/device/split_link.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace fedge::client {
namespace {

Result<void> outcome_of(const Result<protocol::SplitValues>& answer) {
  return answer ? Result<void>() : Result<void>(answer.error());
}

}  // namespace

using protocol::SplitKind;
using protocol::SplitValues;

void SplitLink::Waiting::give(Result<SplitValues> what) {
  {
    const std::lock_guard lock(mutex);
    answer = std::move(what);
  }
  changed.notify_all();
}

Result<SplitValues> SplitLink::Waiting::take(const std::stop_token& stop) {
  std::unique_lock lock(mutex);
  changed.wait(lock, stop, [this] { return answer.has_value(); });
  if (!answer) return Error{ErrorCode::kStale, "the task was cancelled"};
  return *std::exchange(answer, std::nullopt);
}

void SplitLink::ask(SplitValues head, std::vector<std::byte> values, std::shared_ptr<Waiting> waiting) {
  Exchange& exchange = exchanges_[head.run];
  // The answer has as many values, and a length that its sender chooses must not matter.
  exchange = {
      .round = head.round, .incoming = protocol::SplitIncoming(values.size()), .waiting = std::move(waiting)};
  exchange.outgoing = protocol::SplitOutgoing(std::move(head), std::move(values));
  send(exchange);
}

void SplitLink::ask(const protocol::SplitEnded& end, std::shared_ptr<Waiting> waiting) {
  Exchange& exchange = exchanges_[end.run];
  exchange = {.round = end.round, .end = end, .waiting = std::move(waiting)};
  send(exchange);
}

void SplitLink::send(Exchange& exchange) {
  if (exchange.end) return send_(*exchange.end);
  while (const auto part = exchange.outgoing.next()) send_(*part);
}

bool SplitLink::received(const protocol::Message& message) {
  const auto run = protocol::run_of(message);
  const auto found = run ? exchanges_.find(*run) : exchanges_.end();
  Exchange* const exchange =
      found != exchanges_.end() && found->second.waiting != nullptr ? &found->second : nullptr;
  if (const auto* request = std::get_if<protocol::TrainRequest>(&message)) {
    if (exchange == nullptr || request->round != exchange->round) return false;
    if (!request->again && request->coverage != exchange->waiting->trained) return false;
    exchange->outgoing.again();
    send(*exchange);
    return false;  // the engine hears of it as well
  }
  const auto* values = std::get_if<SplitValues>(&message);
  const auto* taken = std::get_if<protocol::SplitTaken>(&message);
  const auto* kept = std::get_if<protocol::SplitKept>(&message);
  const auto* refused = std::get_if<protocol::SplitRefused>(&message);
  if (values == nullptr && taken == nullptr && kept == nullptr && refused == nullptr) return false;
  if (exchange == nullptr) return true;  // of a task that is over
  const auto answer = [&](Result<SplitValues> what) {
    std::exchange(exchange->waiting, nullptr)->give(std::move(what));
  };
  if (values != nullptr && values->round == exchange->round) {
    received(*exchange, *values);
  } else if (taken != nullptr && taken->round == exchange->round) {
    exchange->outgoing.taken(taken->part);
    send(*exchange);
  } else if (kept != nullptr && kept->round == exchange->round && exchange->end) {
    answer(SplitValues{});
  } else if (refused != nullptr && refused->round == exchange->round) {
    answer(Error{refused->code,
                 "the coordinator cannot use what this client sent for its half: " + refused->reason});
  }
  return true;
}

void SplitLink::received(Exchange& exchange, const SplitValues& part) {
  const SplitValues& asked = exchange.outgoing.head();
  // An answer that came twice.
  const bool earlier = asked.kind == SplitKind::kOutputGradients && part.kind == SplitKind::kOutputs;
  if (exchange.end || part.step != asked.step || part.first != asked.first || earlier) return;
  auto whole = exchange.incoming.take(part);
  if (whole && !*whole) return send_(protocol::SplitTaken{part.run, part.round, part.part});
  std::exchange(exchange.waiting, nullptr)
      ->give(whole ? Result<SplitValues>(std::move(**whole)) : whole.error());
}

RemotePeer::RemotePeer(const std::shared_ptr<SplitLink>& link, const protocol::TrainRequest& request,
                       std::stop_token stop)
    : io_(link->io()),
      link_(link),
      run_(request.run),
      round_(request.round),
      trained_(request.coverage),
      stop_(std::move(stop)) {}

Result<void> RemotePeer::begin(const learn::SplitStart& start) {
  steps_ = start.steps;
  return {};
}

template <class... What>
Result<SplitValues> RemotePeer::ask_link(What... what) {
  const auto waiting = std::make_shared<SplitLink::Waiting>();
  waiting->trained = trained_;
  const auto held = std::make_shared<std::tuple<What...>>(std::move(what)...);
  protocol::post(io_, [link = link_, waiting, held] {
    const auto alive = link.lock();
    if (!alive) return waiting->give(Error{ErrorCode::kUnavailable, "this client is ending"});
    std::apply([&](auto&... parts) { alive->ask(std::move(parts)..., waiting); }, *held);
  });
  return waiting->take(stop_);
}

Result<SplitValues> RemotePeer::ask(SplitKind kind, const learn::ExchangedPiece& piece,
                                    std::vector<std::byte>& values) {
  SplitValues head{.run = run_,
                   .round = round_,
                   .kind = kind,
                   .step = piece.step,
                   .first = static_cast<std::uint32_t>(piece.place.first / piece.place.length),
                   .steps = steps_,
                   .total = static_cast<std::uint32_t>(piece.total),
                   .last = piece.last,
                   .sent = {piece.sent.of.begin(), piece.sent.of.end()},
                   .samples = {piece.samples.begin(), piece.samples.end()}};
  for (std::size_t s = 0; s < piece.sent.of.size() && !piece.targets.empty(); ++s)
    for (std::size_t t = 0; t < piece.sent.of[s]; ++t) {
      const learn::Token target = piece.targets[s * piece.place.length + t];
      head.targets.push_back(target == learn::kNoToken ? 0 : std::uint32_t{target} + 1);
    }
  const SplitKind expected =
      kind == SplitKind::kActivations && piece.targets.empty() ? SplitKind::kOutputs : SplitKind::kGradients;
  FEDGE_TRY(answer, ask_link(std::move(head), std::move(values)));
  if (answer.kind != expected || (!piece.targets.empty() && answer.losses.size() != piece.sent.of.size()))
    return invalid("the coordinator's answer for its half of the model is not what this client asked for");
  values = std::move(answer.values);
  return answer;
}

Result<void> RemotePeer::exchange(const learn::ExchangedPiece& piece, std::vector<std::byte>& values,
                                  std::span<double> losses) {
  FEDGE_TRY(answer, ask(SplitKind::kActivations, piece, values));
  std::ranges::copy(answer.losses, losses.begin());
  return {};
}

Result<void> RemotePeer::forward(const learn::ExchangedPiece& piece, std::vector<std::byte>& values) {
  return outcome_of(ask(SplitKind::kActivations, piece, values));
}

Result<void> RemotePeer::backward(const learn::ExchangedPiece& piece, std::vector<std::byte>& values) {
  return outcome_of(ask(SplitKind::kOutputGradients, piece, values));
}

Result<void> RemotePeer::end(std::uint64_t steps) {
  return outcome_of(ask_link(protocol::SplitEnded{run_, round_, steps}));
}

}  // namespace fedge::client

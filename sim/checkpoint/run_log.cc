#include "sim/checkpoint/run_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "checkpoint/checkpoint.pb.h"
#include "server/store/saved_state.h"
#include "sim/checkpoint/records.h"

namespace fedge::sim {
namespace {

using Record = checkpoint::v1::Record;
constexpr std::size_t kLengthBytes = 4;

Result<Digest> digest_of_bytes(const std::string& bytes) {
  Digest digest;
  if (bytes.size() != digest.size()) return RunLog::does_not_fit();
  std::ranges::transform(bytes, digest.begin(), [](char byte) { return static_cast<std::uint8_t>(byte); });
  return digest;
}

}  // namespace

Error RunLog::does_not_fit() {
  return {ErrorCode::kCorrupt,
          "the checkpoint does not fit the run: it was made by another version of the program, or with other "
          "data; --force starts the run from the beginning"};
}

void RunLog::record() {
  mode_ = Mode::kRecording;
  records_.clear();
  next_ = 0;
}

void RunLog::replay(std::string records) {
  mode_ = Mode::kReplaying;
  records_ = std::move(records);
  next_ = 0;
}

template <class R>
void RunLog::append(const R& record) {
  const std::string bytes = record.SerializeAsString();
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    records_.push_back(static_cast<char>(bytes.size() >> (8 * i)));
  records_ += bytes;
}

template <class R>
Result<R> RunLog::peek(std::size_t& end) const {
  if (records_.size() - next_ < kLengthBytes) return does_not_fit();
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::size_t{static_cast<std::uint8_t>(records_[next_ + i])} << (8 * i);
  const std::size_t begin = next_ + kLengthBytes;
  R record;
  if (length > records_.size() - begin ||
      !record.ParseFromArray(records_.data() + begin, static_cast<int>(length)))
    return does_not_fit();
  end = begin + length;
  return record;
}

void RunLog::put_training(ClientId client, const TrainedUpdate& update) {
  if (mode_ != Mode::kRecording) return;
  Record record;
  put(*record.mutable_training(), client, update);
  append(record);
}

Result<TrainedUpdate> RunLog::take_training(ClientId client, TaskId task) {
  std::size_t end = 0;
  FEDGE_TRY(record, peek<Record>(end));
  if (!record.has_training() || ClientId(record.training().client()) != client ||
      task_of(record.training()) != task)
    return does_not_fit();
  next_ = end;
  return training_of(record.training());
}

void RunLog::put_verdict(const Result<void>& sound) {
  if (mode_ != Mode::kRecording || sound) return;
  Record record;
  put(*record.mutable_refused(), sound.error());
  append(record);
}

Result<void> RunLog::take_verdict() {
  if (exhausted()) return {};
  std::size_t end = 0;
  FEDGE_TRY(record, peek<Record>(end));
  if (!record.has_refused()) return {};
  next_ = end;
  return error_of(record.refused());
}

void RunLog::put_digest(const Digest& digest) {
  if (mode_ != Mode::kRecording) return;
  Record record;
  record.set_digest(digest.data(), digest.size());
  append(record);
}

Result<Digest> RunLog::take_digest() {
  std::size_t end = 0;
  FEDGE_TRY(record, peek<Record>(end));
  if (!record.has_digest()) return does_not_fit();
  next_ = end;
  return digest_of_bytes(record.digest());
}

void RunLog::put_sum(const Result<server::MaskedSum>& sum) {
  if (mode_ != Mode::kRecording) return;
  Record record;
  auto& out = *record.mutable_summed();
  if (!sum) put(*out.mutable_failure(), sum.error());
  if (sum) out.set_train_loss(sum->train_loss);
  if (sum)
    for (const ClientId client : sum->bad_shares) out.add_bad_shares(client.value());
  append(record);
}

Result<server::MaskedSum> RunLog::take_sum() {
  std::size_t end = 0;
  FEDGE_TRY(record, peek<Record>(end));
  if (!record.has_summed()) return does_not_fit();
  next_ = end;
  const auto& in = record.summed();
  if (in.has_failure()) return error_of(in.failure());
  server::MaskedSum sum{in.train_loss(), {}};
  for (const std::uint32_t client : in.bad_shares()) sum.bad_shares.emplace_back(client);
  return sum;
}

void RunLog::put_view(TrackId track, const server::TrackView& view) {
  if (mode_ != Mode::kRecording) return;
  View seen{.model = *view.model,
            .control = view.control != nullptr ? std::optional(*view.control) : std::nullopt,
            .live_tracks = view.live_tracks,
            .edges = view.edges,
            .normalisation = view.normalisation};
  const auto last = views_.find(track);
  if (last != views_.end() && last->second == seen) return;
  Record record;
  auto& out = *record.mutable_view();
  out.set_track(track.value());
  out.set_model(server::encode_object(seen.model));
  if (seen.control) out.set_control(server::encode_object(*seen.control));
  for (const TrackId live : seen.live_tracks) out.add_live_tracks(live.value());
  out.mutable_edges()->Add(seen.edges.begin(), seen.edges.end());
  const std::vector<float> numbers = learn::numbers_of(seen.normalisation);
  out.mutable_normalisation()->Add(numbers.begin(), numbers.end());
  append(record);
  views_.insert_or_assign(track, std::move(seen));
}

Result<server::TrackView> RunLog::take_view(TrackId track) {
  std::size_t end = 0;
  if (!exhausted()) {
    FEDGE_TRY(record, peek<Record>(end));
    if (record.has_view()) {
      const auto& in = record.view();
      if (TrackId(in.track()) != track) return does_not_fit();
      View seen;
      FEDGE_TRY(model, server::decode_object(in.model()));
      seen.model = std::move(model);
      if (!in.control().empty()) {
        FEDGE_TRY(control, server::decode_object(in.control()));
        seen.control = std::move(control);
      }
      for (const std::uint32_t live : in.live_tracks()) seen.live_tracks.emplace_back(live);
      seen.edges.assign(in.edges().begin(), in.edges().end());
      seen.normalisation =
          learn::normalisation_of(std::vector<float>(in.normalisation().begin(), in.normalisation().end()));
      views_.insert_or_assign(track, std::move(seen));
      next_ = end;
    }
  }
  const auto seen = views_.find(track);
  if (seen == views_.end()) return does_not_fit();
  const View& view = seen->second;
  return server::TrackView{&view.model, view.control ? &*view.control : nullptr, view.live_tracks, view.edges,
                           view.normalisation};
}

void RunLog::put_closing(const server::RunEngine::CloseRound& turn, const Closing& closing) {
  if (mode_ != Mode::kRecording) return;
  Record record;
  auto& out = *record.mutable_closed();
  out.set_round(turn.round.value());
  out.set_track(turn.track.value());
  out.set_kind(static_cast<std::uint32_t>(turn.kind));
  if (closing.not_made) put(*out.mutable_not_made(), *closing.not_made);
  out.set_ends(closing.ends);
  if (closing.model) out.set_model(closing.model->data(), closing.model->size());
  append(record);
}

Result<RunLog::Closing> RunLog::take_closing(const server::RunEngine::CloseRound& turn) {
  std::size_t end = 0;
  FEDGE_TRY(record, peek<Record>(end));
  const auto& in = record.closed();
  if (!record.has_closed() || RoundNumber(in.round()) != turn.round || TrackId(in.track()) != turn.track ||
      static_cast<TaskKind>(in.kind()) != turn.kind)
    return does_not_fit();
  next_ = end;
  Closing closing{.not_made = {}, .ends = in.ends()};
  if (in.has_not_made()) closing.not_made = error_of(in.not_made());
  if (!in.model().empty()) {
    FEDGE_TRY(model, digest_of_bytes(in.model()));
    closing.model = model;
  }
  return closing;
}

}  // namespace fedge::sim

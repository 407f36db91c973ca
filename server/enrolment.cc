#include "server/enrolment.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/platform/files.h"
#include "server/store/detail/book_history.h"
#include "server/store/detail/join_refusals.h"
#include "server/store/detail/logged_book.h"
#include "server/store/enrolment_file.h"

namespace fedge::server {
namespace {

Error being_written() { return {ErrorCode::kUnavailable, kBookBusy}; }

}  // namespace

Enrolment::Enrolment(std::filesystem::path data_directory)
    : book_(std::make_unique<LoggedBook>(std::move(data_directory))) {}

Enrolment::~Enrolment() = default;
Enrolment::Enrolment(Enrolment&&) noexcept = default;
Enrolment& Enrolment::operator=(Enrolment&&) noexcept = default;

Result<std::vector<AuditEntry>> Enrolment::take_up(const PublicKey& coordinator,
                                                   const std::optional<PublicKey>& announced) {
  FEDGE_TRY(before, book_->rows());
  const std::string key = to_hex(coordinator);
  const auto is_bound = [&](const std::string& bound) {
    return bound == key || (announced && bound == to_hex(*announced));
  };
  if (before.marks.coordinator.empty())
    FEDGE_TRY_VOID(book_->update_unrecorded([&](BookRows& rows) -> Result<bool> {
      if (rows.marks.coordinator.empty()) rows.marks.coordinator = key;
      return true;
    }));
  // An older copy of the book may be bound to a former key: the log knows which key replaced it. Another
  // coordinator's book must not get the entries of this log.
  std::string bound = before.marks.coordinator.empty() ? key : before.marks.coordinator;
  if (!is_bound(bound)) {
    const auto entries = AuditLog(book_->directory()).entries_after(before.marks.recorded);
    if (!entries) return entries.error().with_prefix((book_->directory() / "audit.log").string() + ": ");
    bound = rotated_coordinator(bound, *entries);
  }
  if (!is_bound(bound))
    return Error{ErrorCode::kRefused, enrolment_path(book_->directory()).string() +
                                          " belongs to the coordinator with key " + bound +
                                          ", but the key in node.key is " + key +
                                          "; restore the data directory from a backup"};
  return book_->catch_up();
}

Result<void> Enrolment::catch_up() {
  FEDGE_TRY(made_good, book_->catch_up());
  (void)made_good;
  return {};
}

Result<PublicKey> Enrolment::coordinator() {
  FEDGE_TRY(rows, book_->rows());
  if (rows.marks.coordinator.empty())
    return Error{
        ErrorCode::kNotFound,
        "no coordinator has used " + enrolment_path(book_->directory()).string() + " yet; start it once"};
  return parse_public_key(rows.marks.coordinator);
}

Result<bool> Enrolment::has_coordinator() {
  FEDGE_TRY(rows, book_->rows());
  return !rows.marks.coordinator.empty() || rows.marks.next_token > 1;
}

Result<Enrolment::Changes> Enrolment::refresh() {
  FEDGE_TRY(current, look());
  if (!current) return Changes{.current = false};
  return std::exchange(news_, {});
}

void Enrolment::note_reopened() {
  if (!book_->opened_anew()) return;
  opened_anew_ = true;
  snapshot_.reset();
}

Result<bool> Enrolment::look() {
  // Does not wait for other writers: this thread serves all clients.
  const auto rows = book_->rows(std::chrono::milliseconds(0));
  note_reopened();
  if (!rows && book_->is_busy()) return false;
  if (!rows) return rows.error();
  if (!opened_anew_ && rows->marks.change == seen_) return true;
  auto fresh = rows->changed_after(opened_anew_ ? 0 : seen_);
  if (!fresh && book_->is_busy()) return false;
  if (!fresh) return fresh.error();
  if (opened_anew_) {
    index_.clear();
    tokens_.clear();
    retired_.clear();
    enrolled_ = 0;
  }
  const auto counts = [](const ClientRecord& client) {
    return std::size_t{client.state == ClientState::kEnrolled ? 1U : 0U};
  };
  for (const ClientRecord& client : fresh->clients) {
    if (const auto former = index_.find(client.key); former != index_.end())
      enrolled_ -= counts(former->second);
    index_.insert_or_assign(client.key, client);
    enrolled_ += counts(client);
  }
  // Their clients have other keys now.
  for (const RetiredKey& retired : fresh->retired) {
    const auto former = index_.find(retired.key);
    if (former != index_.end()) enrolled_ -= counts(former->second);
    index_[retired.key] = {.client = retired.client, .key = retired.key, .state = ClientState::kRevoked};
    retired_.insert(retired.key);
  }
  for (const TokenRecord& token : fresh->tokens) tokens_.insert_or_assign(token.secret_hash, token);
  seen_ = rows->marks.change;
  news_.all = news_.all || std::exchange(opened_anew_, false);
  std::ranges::move(fresh->clients, std::back_inserter(news_.clients));
  return true;
}

void Enrolment::learn(const PublicKey& key, const Standing& standing) {
  const ClientRecord client{.client = standing.client,
                            .key = key,
                            .state = standing.pending ? ClientState::kPending : ClientState::kEnrolled,
                            .description = {.project = standing.project}};  // until the book is read
  if (index_.emplace(key, client).second && !standing.pending) ++enrolled_;
}

Result<bool> Enrolment::knows(const std::string& secret) {
  const auto current = look();
  if (tokens_.contains(secret_hash(secret))) return true;
  if (!current) return unavailable(current.error());
  return *current ? Result<bool>(false) : being_written();
}

std::optional<std::vector<std::string>> Enrolment::labels_of(const PublicKey& key) const {
  const auto known = index_.find(key);
  // learn() adds a client before its entry is read.
  if (known == index_.end() || known->second.enrolled == 0) return std::nullopt;
  return known->second.description.labels;
}

std::optional<Error> Enrolment::spent(const std::string& secret, const PublicKey& key,
                                      UnixSeconds now) const {
  const auto token = tokens_.find(secret_hash(secret));
  if (token == tokens_.end()) return std::nullopt;
  if (token->second.revoked) return refused(kTokenRevoked);
  if (const auto known = index_.find(key); known != index_.end()) {
    const ClientRecord& client = known->second;
    if (client.state == ClientState::kRevoked) return refused(kKeyRevoked);
    const bool joined_with_token = client.token != 0;  // false also for a client that learn() added
    if (joined_with_token && client.token != token->second.id) return refused(kOtherToken);
    return std::nullopt;  // it may come for an answer that was lost
  }
  const char* reason = objection(token->second, now);
  return reason == nullptr ? std::nullopt : std::optional(refused(reason));
}

Result<Standing> Enrolment::authenticate(const PublicKey& key) {
  const auto current = look();
  const auto known = index_.find(key);
  if (known == index_.end()) {
    if (!current) return unavailable(current.error());
    if (!*current) return being_written();
    return Error{ErrorCode::kNotFound,
                 "this client is not enrolled at this coordinator; join with a token first"};
  }
  if (retired_.contains(key)) return refused(kKeyRetired);
  if (known->second.state == ClientState::kRevoked) return refused(kKeyRevoked);
  return Standing{.client = known->second.client,
                  .pending = known->second.state == ClientState::kPending,
                  .project = known->second.description.project};
}

Result<std::size_t> Enrolment::count() {
  if (const auto current = look(); !current) return unavailable(current.error());
  return enrolled_;
}

Result<std::vector<RecentEnrolment>> Enrolment::enrolled_since(UnixSeconds since) {
  FEDGE_TRY(rows, book_->rows());
  return rows.enrolled_since(since);
}

Result<EnrolmentBook> Enrolment::read() {
  FEDGE_TRY(rows, book_->rows());
  return rows.changed_after(0);
}

Result<std::shared_ptr<const EnrolmentBook>> Enrolment::snapshot() {
  FEDGE_TRY(rows, book_->rows());
  note_reopened();
  if (snapshot_ && snapshot_change_ == rows.marks.change) return snapshot_;
  FEDGE_TRY(all, rows.changed_after(0));
  snapshot_ = std::make_shared<const EnrolmentBook>(std::move(all));
  snapshot_change_ = rows.marks.change;
  return snapshot_;
}

}  // namespace fedge::server

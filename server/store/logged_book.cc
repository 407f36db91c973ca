#include "server/store/detail/logged_book.h"

#include <utility>

#include "core/platform/files.h"
#include "server/store/detail/book_history.h"
#include "server/store/enrolment_file.h"

namespace fedge::server {

Result<EnrolmentStore*> LoggedBook::store() {
  auto found = find_store();
  usable_ = found.has_value();
  return found;
}

Result<EnrolmentStore*> LoggedBook::find_store() {
  // After the first read the book must exist: a missing file is an error and must not be replaced by a new
  // book.
  if (store_) {
    const auto in_place = store_->check_in_place();
    if (in_place) return store_.get();
    if (!identity_of(enrolment_path(directory_))) return in_place.error();
    store_.reset();
  } else if (!identity_.empty()) {
    FEDGE_TRY(there, identity_of(enrolment_path(directory_)));
    (void)there;
  }
  FEDGE_TRY(opened, EnrolmentStore::open(directory_));
  FEDGE_TRY(rows, opened->rows());
  if (!identity_.empty() && rows.marks.identity != identity_)
    return Error{ErrorCode::kUnavailable,
                 enrolment_path(directory_).string() +
                     " is not the enrolment book that the running coordinator opened; put that book back, or "
                     "restart the coordinator to use the new one"};
  identity_ = rows.marks.identity;
  store_ = std::move(opened);
  opened_anew_ = true;
  return store_.get();
}

Result<BookRows> LoggedBook::rows(std::chrono::milliseconds wait) {
  FEDGE_TRY(book, store());
  return book->rows(wait);
}

Result<void> LoggedBook::update_unrecorded(const std::function<Result<bool>(BookRows&)>& change) {
  FEDGE_TRY(book, store());
  return book->update(change);
}

Result<void> LoggedBook::update(const std::function<Result<std::optional<AuditEvent>>(BookRows&)>& change) {
  FEDGE_TRY(book, store());
  FEDGE_TRY(made_good, catch_up());
  (void)made_good;
  std::optional<std::uint64_t> entry;
  std::string action;
  Actor actor;
  const auto done = book->update([&](BookRows& rows) -> Result<bool> {
    FEDGE_TRY(event, change(rows));
    if (!event) return false;
    FEDGE_TRY(sequence, audit_.record(*event));
    action = event->action;
    actor.name = event->actor;
    for (const auto& [name, value] : event->details)
      if (name == "from") actor.address = value;
    entry = rows.marks.recorded = sequence;
    return true;
  });
  // If this write fails too, catch_up() finds an entry that the book lacks.
  if (!done && entry) (void)audit_.append(change_failed(actor, *entry, action, done.error().message));
  return done;
}

Result<std::vector<AuditEntry>> LoggedBook::catch_up() {
  FEDGE_TRY(book, store());
  FEDGE_TRY(now, book->rows());
  FEDGE_TRY(last, audit_.last());
  std::vector<AuditEntry> made_good;
  if (last <= now.marks.recorded) return made_good;
  FEDGE_TRY_VOID(book->update([&](BookRows& rows) -> Result<bool> {
    // Other changes are recorded within their transactions: entries that the book lacks now are final.
    FEDGE_TRY(entries, audit_.entries_after(rows.marks.recorded));
    FEDGE_TRY(good, make_good(rows, entries));
    made_good = std::move(good);
    if (!entries.empty()) rows.marks.recorded = entries.back().sequence;
    if (made_good.empty()) return !entries.empty();
    FEDGE_TRY(sequence, audit_.record({operator_name(),
                                       "enrolment.repaired",
                                       "entries " + std::to_string(made_good.front().sequence) + " to " +
                                           std::to_string(made_good.back().sequence),
                                       {{"reason", "the enrolment book lacked these changes"}}}));
    rows.marks.recorded = sequence;
    return true;
  }));
  return made_good;
}

}  // namespace fedge::server

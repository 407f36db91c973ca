// Location and creation of the enrolment book. Enrolment reads and changes it.
#pragma once

#include <filesystem>

#include "core/result.h"
#include "server/access/enrolment_book.h"

namespace fedge::server {

// Returns the path of enrolment.db in the data directory.
std::filesystem::path enrolment_path(const std::filesystem::path& data_directory);

// Creates a book with this content, atomically, where there is none: in a new data directory, from an older
// version's book, or for a benchmark. kRefused: the data directory's files belong to another user.
Result<void> create_enrolment_book(const std::filesystem::path& data_directory, const EnrolmentBook& book);

}  // namespace fedge::server

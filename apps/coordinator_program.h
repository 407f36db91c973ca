// fedge-coordinator as a function, for programs with additional parts: register them, then call it.
#pragma once

#include <string>

namespace fedge::apps {

// Takes main()'s arguments and returns its exit code. Messages begin with the program's own name, argv[0].
int coordinator_main(int argc, char** argv);
// The same under another name: "custom-sim coordinator".
int coordinator_main_as(const std::string& program, int argc, char** argv);

}  // namespace fedge::apps

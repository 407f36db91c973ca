// fedge-coordinator as a function, for programs with additional parts: register them, then call it.
#pragma once

namespace fedge::apps {

// Takes main()'s arguments and returns its exit code.
int coordinator_main(int argc, char** argv);

}  // namespace fedge::apps

// fedge-coordinator: the daemon of an organisation that hosts a federation.
#include "apps/coordinator_program.h"

int main(int argc, char** argv) { return fedge::apps::coordinator_main(argc, argv); }

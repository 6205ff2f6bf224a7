// The command line: wiring only.
int main() { return 0; }

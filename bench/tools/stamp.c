/* The child of every measurement: appends the time of its start to the file that it is given, and ends.
 * One process, one write, no shell: what is measured is the scheduler, not its child. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **words) {
    struct timespec now;
    char line[64];
    clock_gettime(CLOCK_REALTIME, &now);
    if (count < 2) return 2;
    int file = open(words[1], O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (file < 0) return 1;
    int length = snprintf(line, sizeof line, "%lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    return write(file, line, length) == length ? 0 : 1;
}

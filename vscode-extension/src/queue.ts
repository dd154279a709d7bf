/** Runs one piece of work at a time; what is asked for meanwhile is done once more, afterwards. */
export class SerialQueue {
  private running: Promise<void> | undefined;
  private queued: Promise<void> | undefined;

  constructor(private readonly work: () => Promise<void>) {}

  /** Settles when a run that began after this call has ended, as that run does. */
  request(): Promise<void> {
    if (this.running === undefined) {
      return this.begin();
    }
    this.queued ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.queued = undefined;
        return this.begin();
      });
    return this.queued;
  }

  private begin(): Promise<void> {
    const run = this.work().finally(() => {
      if (this.running === run) {
        this.running = undefined;
      }
    });
    this.running = run;
    return run;
  }
}

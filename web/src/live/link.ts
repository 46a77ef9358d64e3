// The connection to the program that records: a WebSocket at the page's own address, which is made again where it breaks.

const AGAIN_MS = 1000;

export interface LinkListener {
  opened: () => void;
  /** The connection broke, or could not be made. Answers whether it is to be made again. */
  closed: () => boolean;
  text: (text: string) => void;
  bytes: (data: ArrayBuffer) => void;
}

export class Link {
  private socket: WebSocket | null = null;
  private timer = 0;

  constructor(private readonly listener: LinkListener) {
    this.connect();
  }

  /** Asks the program for something; false where there is no connection. */
  ask(what: object): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(what));
    return true;
  }

  close(): void {
    clearTimeout(this.timer);
    const { socket } = this;
    this.socket = null;
    socket?.close();
  }

  private connect(): void {
    const address = new URL("live", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.hash = "";
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => this.listener.opened();
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (typeof data === "string") this.listener.text(data);
      else this.listener.bytes(data);
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      if (this.listener.closed()) this.timer = setTimeout(() => this.connect(), AGAIN_MS) as unknown as number;
    };
  }
}

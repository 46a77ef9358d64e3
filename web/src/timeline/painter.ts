// Puts painted lines on a canvas. A line is one row of pixels that is stretched downwards over its height:
// the processor paints each line once, and the graphics card (or a copy in memory) makes the area of it.

import { context2d } from "./canvas";

export interface Painter {
  readonly kind: "webgl" | "canvas";
  readonly canvas: HTMLCanvasElement;
  /** Begins a picture of `width` by `height` device pixels. */
  begin(width: number, height: number): void;
  /** Draws `pixels` (packed colours, as many as the picture is wide) from `y` on, `height` pixels high. */
  line(pixels: Uint32Array, y: number, height: number): void;
  end(): void;
  /** The packed colour of a pixel; only right after `end`. */
  pixel(x: number, y: number): number;
}

/**
 * A painter with its own canvas: with WebGL2 where a graphics card does it, else in memory, which is quicker
 * than WebGL without one. `redraw` is called when a picture was lost. Tests may want WebGL in software.
 */
export function makePainter(redraw: () => void): Painter {
  const { __tracebridgeSoftwareGl: software } = window as { __tracebridgeSoftwareGl?: boolean };
  const canvas = document.createElement("canvas");
  const gl = canvas.getContext("webgl2", {
    alpha: false,
    antialias: false,
    depth: false,
    failIfMajorPerformanceCaveat: !software,
  });
  const wanted = gl && (software === true || !isSoftware(gl));
  const painter = wanted ? WebGlPainter.make(canvas, gl, redraw) : null;
  return painter ?? new CanvasPainter(document.createElement("canvas"));
}

/** A painter in memory, for pictures that are kept. */
export function memoryPainter(): Painter {
  return new CanvasPainter(document.createElement("canvas"));
}

/** Whether WebGL is computed by the processor; browsers do not always call that a performance caveat. */
function isSoftware(gl: WebGL2RenderingContext): boolean {
  const names = gl.getExtension("WEBGL_debug_renderer_info");
  const renderer = String(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  return /swiftshader|llvmpipe|softpipe|software/i.test(renderer);
}

class CanvasPainter implements Painter {
  readonly kind = "canvas";
  private readonly context: CanvasRenderingContext2D;
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);

  constructor(readonly canvas: HTMLCanvasElement) {
    this.context = context2d(canvas, { alpha: false });
  }

  begin(width: number, height: number): void {
    if (this.image.width === width && this.image.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  line(pixels: Uint32Array, y: number, height: number): void {
    const { width } = this.image;
    const bottom = Math.min(y + height, this.image.height);
    const top = Math.max(y, 0);
    if (top >= bottom) return;
    this.pixels.set(pixels, top * width);
    for (let row = top + 1; row < bottom; row++) {
      this.pixels.copyWithin(row * width, top * width, (top + 1) * width);
    }
  }

  end(): void {
    this.context.putImageData(this.image, 0, 0);
  }

  pixel(x: number, y: number): number {
    return this.pixels[y * this.image.width + x];
  }
}

const VERTEX = `#version 300 es
in vec3 place;
uniform float height;
flat out int row;
void main() {
  vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  float y = place.x + corner.y * place.y;
  gl_Position = vec4(corner.x * 2.0 - 1.0, 1.0 - 2.0 * y / height, 0.0, 1.0);
  row = int(place.z);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D lines;
flat in int row;
out vec4 color;
void main() { color = texelFetch(lines, ivec2(int(gl_FragCoord.x), row), 0); }`;

/** Draws each line as a rectangle, all of them in one call; the lines are the rows of one texture. */
class WebGlPainter implements Painter {
  readonly kind = "webgl";
  private width = 0;
  private height = 0;
  private room = 0;
  private count = 0;
  private lines = new Uint32Array(0);
  private places = new Float32Array(0);
  private heightPlace: WebGLUniformLocation | null = null;

  static make(canvas: HTMLCanvasElement, gl: WebGL2RenderingContext, redraw: () => void): WebGlPainter | null {
    const painter = new WebGlPainter(canvas, gl);
    if (!painter.setUp()) return null;
    // The system may take the graphics card away, for example while the computer sleeps.
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      painter.width = 0;
      painter.setUp();
      redraw();
    });
    return painter;
  }

  private constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly gl: WebGL2RenderingContext,
  ) {}

  /** Whether the program that draws could be made. */
  private setUp(): boolean {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [type, source] of [
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ] as const) {
      const shader = gl.createShader(type);
      if (!shader) return false;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return false;
    gl.useProgram(program);
    this.heightPlace = gl.getUniformLocation(program, "height");
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    const place = gl.getAttribLocation(program, "place");
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
    gl.vertexAttribDivisor(place, 1);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    return true;
  }

  begin(width: number, height: number): void {
    this.count = 0;
    if (this.width === width && this.height === height) return;
    this.canvas.width = this.width = width;
    this.canvas.height = this.height = height;
    this.gl.viewport(0, 0, width, height);
    this.makeRoom(Math.max(64, this.room));
  }

  line(pixels: Uint32Array, y: number, height: number): void {
    if (this.count === this.room) this.makeRoom(this.room * 2);
    this.lines.set(pixels, this.count * this.width);
    this.places.set([y, height, this.count], this.count * 3);
    this.count++;
  }

  end(): void {
    const { gl } = this;
    const bytes = new Uint8Array(this.lines.buffer, 0, this.count * this.width * 4);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, this.width, this.count, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    gl.bufferData(gl.ARRAY_BUFFER, this.places.subarray(0, this.count * 3), gl.DYNAMIC_DRAW);
    gl.uniform1f(this.heightPlace, this.height);
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, this.count);
  }

  pixel(x: number, y: number): number {
    const color = new Uint8Array(4);
    this.gl.readPixels(x, this.height - 1 - y, 1, 1, this.gl.RGBA, this.gl.UNSIGNED_BYTE, color);
    return new Uint32Array(color.buffer)[0];
  }

  private makeRoom(room: number): void {
    const { gl, lines, places } = this;
    this.room = room;
    this.lines = new Uint32Array(room * this.width);
    this.lines.set(lines.subarray(0, Math.min(this.count * this.width, this.lines.length)));
    this.places = new Float32Array(room * 3);
    this.places.set(places.subarray(0, this.count * 3));
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, this.width, room, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
  }
}

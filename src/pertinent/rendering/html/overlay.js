// Adds a slider for the opacity of each heat map over its image.
let opacity = 100; // of all heat maps, in percent

export function addSliders(root) {
  for (const heat of root.querySelectorAll(".overlay .over")) {
    const slider = document.createElement("input"), label = document.createElement("label");
    Object.assign(slider, { type: "range", min: 0, max: 100, value: opacity });
    const show = () => {
      opacity = slider.value;
      heat.style.setProperty("opacity", opacity / 100);
      heat.previousElementSibling.style.setProperty("opacity", 1 - (0.4 * opacity) / 100);
      heat.previousElementSibling.style.setProperty("filter", `grayscale(${opacity}%)`);
    };
    slider.addEventListener("input", show);
    label.append("heat map ", slider);
    heat.closest("figure").append(label);
    show();
  }
}
